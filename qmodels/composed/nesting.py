"""What is inside of what in a plan: parts and pools that are asked while tokens are held."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from qmodels.composed.plan import (
    Ask,
    Choice,
    Copies,
    Give,
    Node,
    Plan,
    Rounds,
    Series,
    Take,
    Together,
    Travel,
)


def asked_inside(plan: Plan, pool: str, network: str) -> set[str]:
    """Return the parts that are asked while tokens of a pool are held."""
    found = set()
    for node, held in _steps(plan):
        if pool in held:
            if isinstance(node, Ask):
                found.add(node.site.part)
                if node.there is not None or node.back is not None:
                    found.add(network)
            elif isinstance(node, Travel):
                found.add(network)
    return found


def sites_inside(plan: Plan, pool: str) -> set[int]:
    """Return the sites that are asked while tokens of a pool are held."""
    return {node.site.number for node, held in _steps(plan) if isinstance(node, Ask) and pool in held}


def pools_inside(plan: Plan) -> dict[str, set[str]]:
    """Return for each pool those that are taken from while its tokens are held; inner ones first."""
    inside: dict[str, set[str]] = {take.part: set() for take in plan.takes}
    for pool, inner in taken_while_held(plan):
        if pool != inner:
            inside[pool].add(inner)
    return dict(sorted(inside.items(), key=lambda item: len(item[1])))


def taken_while_held(plan: Plan) -> set[tuple[str, str]]:
    """Return pairs of pools: tokens of the second are taken while some of the first are held."""
    return {(pool, node.site.part) for node, held in _steps(plan) if isinstance(node, Take) for pool in held}


def taken_in_branches(plan: Plan) -> set[str]:
    """Return the pools that branches or copies of a job take from: it may be at several of them at once."""
    joins = (node for node, _ in _steps(plan) if isinstance(node, Together | Copies))
    return {inside.site.part for node in joins for inside, _ in _walk(node, {}) if isinstance(inside, Take)}


def _steps(plan: Plan) -> Iterator[tuple[Any, dict[str, int]]]:
    for root in plan.roots.values():
        yield from _walk(root, {})


def _walk(node: Node, held: dict[str, int]) -> Iterator[tuple[Any, dict[str, int]]]:
    """Yield what a program does and the tokens that are held then, by pool; ``held`` is changed."""
    yield node, held
    match node:
        case Take():
            held[node.site.part] = held.get(node.site.part, 0) + node.tokens
        case Give():
            left = held.pop(node.pool, 0) - node.tokens
            if left > 0:
                held[node.pool] = left
        case Series():
            for inside in node.nodes:
                yield from _walk(inside, held)
        case Choice():
            before = dict(held)
            for inside in node.nodes:
                held.clear()
                held.update(before)
                yield from _walk(inside, held)
        case Together():
            for inside in node.nodes:
                yield from _walk(inside, dict(held))
        case Copies() | Rounds():
            yield from _walk(node.node, held)
