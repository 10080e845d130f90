"""A DRAM controller stepped cycle by cycle in plain Python: slow, and written apart from the kernel.

Commands are kept as a history; whether one may be given is looked up in all that were given before.
"""

from dataclasses import dataclass, field
from typing import Any

from qmodels import DramSystem


@dataclass
class Access:
    number: int
    arrival: int
    bank: int
    row: int
    write: bool


@dataclass
class CycleTwin:
    spec: DramSystem
    history: list[tuple[int, str, int]] = field(default_factory=list)
    open_row: dict[int, int] = field(default_factory=dict)
    hits: dict[int, int] = field(default_factory=dict)

    def same_group(self, a: int, b: int) -> bool:
        return a // self.spec.geometry.banks == b // self.spec.geometry.banks

    def same_rank(self, a: int, b: int) -> bool:
        size = self.spec.geometry.rank_banks
        return a // size == b // size

    def may(self, cycle: int, command: str, bank: int) -> bool:
        """Whether a command obeys every rule between it and an earlier one."""
        t = self.spec.timing
        rows = 0
        for when, earlier, other in reversed(self.history):
            since = cycle - when
            if since > 400:
                break
            if since < self.least(command, bank, earlier, other):
                return False
            if command == "row" and earlier == "row" and self.same_rank(bank, other):
                rows += 1
                if rows == 4 and since < t.t_faw:
                    return False
        return True

    def least(self, command: str, bank: int, earlier: str, other: int) -> int:
        t = self.spec.timing
        own, group, rank = bank == other, self.same_group(bank, other), self.same_rank(bank, other)
        closed = self.spec.page_policy == "closed"
        data = {"read": t.cl, "write": t.cwl}
        if command == "row":
            if earlier == "row":
                return t.t_rc if own else (t.t_rrd_l if group else t.t_rrd_s) if rank else 0
            if not own:
                return 0
            if earlier == "close":
                return t.t_rp
            done = t.t_rtp if earlier == "read" else t.cwl + t.burst + t.t_wr
            return done + t.t_rp if closed else 0
        if command == "close":
            if not own:
                return 0
            return {"row": t.t_ras, "read": t.t_rtp, "write": t.cwl + t.burst + t.t_wr, "close": 0}[earlier]
        if earlier == "row":
            return t.t_rcd if own else 0
        if earlier == "close":
            return 0
        if earlier == command:
            return t.t_ccd_l if group else t.burst if rank else t.burst + t.t_rtrs
        if earlier == "write" and rank:
            return t.cwl + t.burst + (t.t_wtr_l if group else t.t_wtr_s)
        # The data of the one must have left the bus before those of the other come.
        return max(t.burst, data[earlier] + t.burst + t.t_rtrs - data[command])

    def chosen(self, waiting: list[Access], bank: int) -> Access:
        mine = [a for a in waiting if a.bank == bank]
        if self.spec.scheduler == "fr-fcfs" and self.hits.get(bank, 0) < self.spec.row_hit_cap:
            for access in mine:
                if access.row == self.open_row.get(bank):
                    return access
        return mine[0]

    def run(self, accesses: list[Access]) -> dict[int, int]:
        """Return the latency of each access."""
        spec, t = self.spec, self.spec.timing
        waiting: tuple[list[Access], list[Access]] = ([], [])
        latency: dict[int, int] = {}
        mode, cycle, coming = 0, 0, list(accesses)

        def turn(mode: int) -> int:
            reads, writes = len(waiting[0]), len(waiting[1])
            if mode == 0:
                return int(writes >= spec.write_high or (reads == 0 and writes > 0))
            return int(not (writes == 0 or (reads > 0 and writes <= spec.write_low)))

        while len(latency) < len(accesses):
            while coming and coming[0].arrival == cycle:
                access = coming.pop(0)
                waiting[access.write].append(access)
                mode = turn(mode)
            best: Any = None
            for bank in sorted({a.bank for a in waiting[mode]}):
                access = self.chosen(waiting[mode], bank)
                if bank not in self.open_row:
                    command = "row"
                elif self.open_row[bank] == access.row:
                    command = ("read", "write")[mode]
                else:
                    command = "close"
                if self.may(cycle, command, bank):
                    key = command in ("row", "close"), access.number
                    if best is None or key < best[0]:
                        best = key, command, access
            if best is not None:
                _, command, access = best
                self.history.append((cycle, command, access.bank))
                if command == "row":
                    self.open_row[access.bank], self.hits[access.bank] = access.row, 0
                elif command == "close":
                    del self.open_row[access.bank]
                else:
                    delay = t.cwl if access.write else t.cl
                    latency[access.number] = cycle + delay + t.burst - access.arrival
                    self.hits[access.bank] += 1
                    if spec.page_policy == "closed":
                        del self.open_row[access.bank]
                    waiting[mode].remove(access)
                    mode = turn(mode)
            cycle += 1
        return latency
