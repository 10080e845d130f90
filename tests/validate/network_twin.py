"""A second simulator of open queueing networks, in plain Python and written for reading.

It knows first come first served and priorities without interruption, several servers, losses,
patience, batches, class changes and random routing; it draws the same random numbers from the same
streams, but shares nothing else with the kernel.
"""

import heapq
from itertools import count

from qmodels.systems.stations.parts import LEAVE
from validate.engine.sampling import draw, law_table
from validate.engine.streams import new_streams, uniform


class Source:
    """One stream, and perhaps a law."""

    def __init__(self, name, law, seed):
        self.streams = new_streams(seed=seed, replication=0, sources=[name])
        self.table = law_table([law] if law else [])

    def time(self):
        return draw(*self.table, self.streams, 0)

    def choice(self, rule):
        """Return a destination of a probabilistic rule."""
        options = rule.probabilities
        if len(options) == 1:
            return options[0][0]
        u, total = uniform(self.streams, 0), 0.0
        for place, share in options[:-1]:
            total += share
            if u <= total:
                return place
        return options[-1][0]


def visits(spec, passages, seed):
    """Return (job, class, node, arrived, started or None, left, outcome) of all visits, in their order."""
    sources = {}

    def source(name, law=None):
        if name not in sources:
            sources[name] = Source(name, law, seed)
        return sources[name]

    events, order, serials = [], count(), count()
    stations, classes = spec.stations, spec.classes
    queues = [[] for _ in stations]
    numbers, busy = [0] * len(stations), [0] * len(stations)
    found, ended = [], 0

    def schedule(time, late, action, *arguments):
        heapq.heappush(events, (time, late, next(order), action, arguments))

    def come_in(now, k):
        c = classes[k]
        size = int(source(f"batch {c.name}", c.batch).time()) if c.batch else 1
        for _ in range(size):
            place = source(f"entry {c.name}").choice(spec.entries[k])
            go(now, {"serial": next(serials), "class": k}, place)
        schedule(now + source(f"arrivals {c.name}", c.arrivals).time(), True, come_in, k)

    def go(now, job, place):
        nonlocal ended
        node, new = place
        if new:
            job["class"] = spec.class_names.index(new)
        if node == LEAVE:
            ended += 1
            return
        s = spec.nodes.index(node)
        if numbers[s] >= stations[s].capacity:
            found.append((job["serial"], job["class"], s, now, None, now, "lost"))
            ended += 1
            return
        numbers[s] += 1
        job |= {"arrived": now, "order": next(order), "started": None, "gone": False}
        queues[s].append(job)
        serve(now, s)
        patience = classes[job["class"]].patience
        if patience and job["started"] is None:
            schedule(
                now + source(f"patience {classes[job['class']].name}", patience).time(),
                False,
                give_up,
                s,
                job,
            )

    def serve(now, s):
        while queues[s] and busy[s] < stations[s].servers:
            ranked = stations[s].discipline == "priority"
            job = min(queues[s], key=lambda j: (classes[j["class"]].priority if ranked else 0, j["order"]))
            queues[s].remove(job)
            busy[s] += 1
            job["started"] = now
            name = spec.class_names[job["class"]]
            law = stations[s].service_law(name)
            schedule(now + source(f"service {stations[s].name} {name}", law).time(), False, finish, s, job)

    def finish(now, s, job):
        found.append((job["serial"], job["class"], s, job["arrived"], job["started"], now, "completed"))
        place = source(f"routing {stations[s].name} {spec.class_names[job['class']]}").choice(
            spec.rules[s, job["class"]]
        )
        numbers[s] -= 1
        busy[s] -= 1
        go(now, dict(job), place)
        serve(now, s)

    def give_up(now, s, job):
        nonlocal ended
        if job in queues[s] and job["started"] is None:
            queues[s].remove(job)
            numbers[s] -= 1
            found.append((job["serial"], job["class"], s, job["arrived"], None, now, "reneged"))
            ended += 1

    for k, c in enumerate(classes):
        if c.arrivals:
            schedule(source(f"arrivals {c.name}", c.arrivals).time(), True, come_in, k)
    while ended < passages:
        now, _, _, action, arguments = heapq.heappop(events)
        action(now, *arguments)
    return found
