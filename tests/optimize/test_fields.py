from dataclasses import dataclass, field, replace

import pytest

import qmodels as qm
from optimize import Space, explore, field_paths, find_field, get_field, replace_fields
from qmodels.systems.starters import small_system


@dataclass(frozen=True, kw_only=True)
class Dram:
    channels: int = 4
    banks: int = 8
    clock: float = 0.4

    def __post_init__(self) -> None:
        if self.banks % self.channels:
            raise ValueError(f"banks must be a multiple of channels, got {self.banks} and {self.channels}")


@dataclass(frozen=True, kw_only=True)
class Uniform:
    pass


@dataclass(frozen=True, kw_only=True)
class Zipf:
    exponent: float = 0.83


@dataclass(frozen=True, kw_only=True)
class Cache:
    slices: int = 1
    clock: float = 1.0
    popularity: Zipf | Uniform = Zipf()


@dataclass(frozen=True, kw_only=True)
class Chip:
    dram: Dram = Dram()
    cache: Cache = Cache()
    sizes: tuple[int, ...] = (64, 1500)
    load: float | None = None
    area: float = field(default=0.0, init=False)


def test_leaves_are_listed_with_dotted_paths_in_order():
    assert field_paths(Chip()) == {
        "dram.channels": 4,
        "dram.banks": 8,
        "dram.clock": 0.4,
        "cache.slices": 1,
        "cache.clock": 1.0,
        "cache.popularity.exponent": 0.83,
        "sizes": (64, 1500),
        "load": None,
    }


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("dram.channels", "dram.channels"),
        ("channels", "dram.channels"),
        ("exponent", "cache.popularity.exponent"),
        ("popularity.exponent", "cache.popularity.exponent"),
        ("load", "load"),
        ("dram", "dram"),
        ("popularity", "cache.popularity"),
    ],
)
def test_names_are_paths_or_unique_ends(name, path):
    assert find_field(Chip(), name) == path


def test_get_reads_what_replace_wrote():
    chip = Chip()
    for name, value in {
        "channels": 2,
        "cache.clock": 2.0,
        "exponent": 1.0,
        "sizes": (40,),
        "load": 0.9,
    }.items():
        changed = replace_fields(chip, {name: value})
        assert get_field(changed, name) == value
        path = find_field(chip, name)
        others = {key: old for key, old in field_paths(chip).items() if key != path}
        assert others.items() <= field_paths(changed).items()
    assert chip == Chip()


def test_a_branch_is_replaced_whole():
    chip = replace_fields(Chip(), {"popularity": Uniform(), "slices": 4})
    assert chip.cache == Cache(slices=4, popularity=Uniform())


def test_fields_of_one_part_are_replaced_together():
    # 8 channels need 16 banks: either change alone is refused, both together are not.
    start = Chip(dram=Dram(channels=3, banks=9))
    assert replace_fields(start, {"channels": 8, "banks": 16}).dram == Dram(channels=8, banks=16)
    with pytest.raises(ValueError, match="banks must be a multiple of channels, got 9 and 8"):
        replace_fields(start, {"channels": 8})


def test_values_are_not_converted():
    assert replace_fields(Chip(), {"load": "0.5"}).load == "0.5"
    assert replace_fields(Chip(), {}) == replace(Chip())


def test_one_word_of_a_name_suggests_it_and_several_suggestions_are_paths():
    """A heading of a table says trials; the field alloc_trial_count is not spelt like it."""

    @dataclass(frozen=True)
    class FreeList:
        alloc_trial_count: int = 1

    @dataclass(frozen=True)
    class Cost:
        trial: float = 0.1

    @dataclass(frozen=True)
    class Allocator:
        free_list: FreeList = FreeList()
        cost: Cost = Cost()

    for spec, known in ((FreeList(), "'alloc_trial_count'"), (Cost(), "'trial'")):
        with pytest.raises(ValueError) as caught:
            find_field(spec, "trials")
        assert str(caught.value).endswith(f"has no field 'trials'; did you mean {known}?")
    with pytest.raises(ValueError) as caught:
        find_field(Allocator(), "trials")
    suggested = str(caught.value).split("did you mean ")[1].rstrip("?").split(" or ")
    assert sorted(suggested) == ["'cost.trial'", "'free_list.alloc_trial_count'"]
    for path in suggested:
        assert find_field(Allocator(), path.strip("'")) == path.strip("'")


def test_overlapping_names_are_refused():
    with pytest.raises(ValueError, match="fields 'channels' and 'dram.channels' overlap: dram.channels and"):
        replace_fields(Chip(), {"channels": 1, "dram.channels": 2})
    with pytest.raises(ValueError, match="fields 'dram' and 'channels' overlap: dram and dram.channels"):
        replace_fields(Chip(), {"dram": Dram(), "channels": 2})


@pytest.mark.parametrize("spec", [3, Chip, {"channels": 1}])
def test_specs_are_dataclass_instances(spec):
    with pytest.raises(ValueError, match="spec must be a dataclass instance, got"):
        field_paths(spec)


SYSTEM = small_system()
DRAMS = (qm.dram("DDR4-3200"), qm.dram("HBM3"), qm.dram("DDR4-3200", channels=2))


def test_every_field_of_every_part_can_be_varied():
    for path, value in field_paths(SYSTEM).items():
        space = Space(SYSTEM, {path: [value]})
        assert space.spec(0) == SYSTEM and space.paths == {path: path}


def test_choices_reach_the_parts_flows_and_places():
    fields = {
        "dram.channels": [1, 4],
        "engine.servers": [1, 2],
        "lookups.rate": [0.01, 0.02],
        "place.dram": [(3,), "1..2"],
        "lookups.program": ["visit engine; acquire requests; read dram 2; release requests"],
        "mesh.topology": [qm.mesh(2, 2), qm.ring(4)],
    }
    space = Space(SYSTEM, fields)
    last = space.spec(space.size - 1)
    assert last.parts["dram"].geometry.channels == 4 and last.parts["engine"].servers == 2
    assert (last.flows[0].rate, last.place["dram"], last.network.topology) == (0.02, (1, 2), qm.ring(4))
    assert last.flows[0].program[2] == qm.steps.Read("dram", 2)
    assert space.numeric == ("dram.channels", "engine.servers", "lookups.rate")


def test_parts_are_choices():
    space = Space(SYSTEM, {"dram": DRAMS, "requests.count": [4, 8]})
    assert [space.spec(k).parts["dram"] for k in (0, 2, 4)] == list(DRAMS)
    found = explore(space, qm.solve, minimize="latency")
    feasible = [k for k in range(space.size) if found.table["stable"][k]]
    assert found.front.tolist() == [min(feasible, key=lambda k: found.table["latency"][k])]
    each = [
        float(qm.solve(replace_fields(SYSTEM, {"dram": one, "requests.count": 8})).latency) for one in DRAMS
    ]
    assert found.table["latency"][1::2].tolist() == pytest.approx(each, rel=1e-9)


def test_a_part_may_go_by_the_word_of_a_field():
    named = replace(
        SYSTEM,
        parts={**{n: p for n, p in SYSTEM.parts.items() if n != "requests"}, "count": qm.Tokens(count=2)},
        flows=replace(SYSTEM.flows[0], program="visit engine; acquire count; read dram; release count"),
    )
    assert Space(named, count=[qm.Tokens(count=3)]).paths == {"count": "parts.count"}
