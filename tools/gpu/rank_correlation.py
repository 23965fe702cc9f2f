#!/usr/bin/env python3
"""Spearman's rank correlation of a model with a measure that has noise.

    python3 tools/gpu/rank_correlation.py         # compares the fast algorithm with all permutations

The correlation is Pearson's of the ranks. Two measured numbers that differ by less than the noise have no order: the
measure allows both, so neither can contradict the model. Such pairs are no equivalence (a may tie with b and b with c,
while c is surely larger than a), so ranks cannot just be averaged. What is measured is a partial order: a before b if b
is larger by more than the noise. The correlation is the largest over all orders that agree with it.

The ranks of the model are fixed (equal numbers share their mean rank), and those of an order are a permutation, so the
largest correlation is the largest sum of products of both ranks. It is found over sets, as for the precedence-constrained
sum of completion times: the best sum of a set that comes first depends on the set only.

Equal numbers of the model that are measured as different get the mean rank here but not there: a contradiction, though
a smaller one than the wrong order. Equal ones that the measure allows to be equal share their rank in both.
"""

import itertools
import math
import random
import statistics


def ranks(numbers):
    """Ranks from 0; equal numbers share their mean."""
    ordered = sorted(numbers)
    return [(ordered.index(number) + len(ordered) - 1 - ordered[::-1].index(number)) / 2 for number in numbers]


def pearson(one, other):
    """The correlation; 1 if both are constant, 0 if one is."""
    means = [statistics.fmean(numbers) for numbers in (one, other)]
    parts = [[number - mean for number in numbers] for numbers, mean in zip((one, other), means)]
    lengths = [math.sqrt(sum(part * part for part in of)) for of in parts]
    if not all(lengths):
        return float(not any(lengths))
    return sum(a * b for a, b in zip(*parts)) / (lengths[0] * lengths[1])


def plain(model, measured):
    """Spearman's correlation, as if there were no noise."""
    return pearson(ranks(model), ranks(measured))


def before(measured, noise):
    """For each number the set (as bits) of those that are surely smaller."""
    return [
        sum(1 << other for other, number in enumerate(measured) if number * (1 + noise) < limit) for limit in measured
    ]


def allowed(model, measured, noise):
    """The largest correlation over all orders that the measure allows, noise being relative."""
    order = best_order(ranks(model), before(measured, noise))
    return of_order(model, measured, noise, order)


def of_order(model, measured, noise, order):
    """The correlation for an order of the measured numbers; equal ones of the model that may be equal share a rank."""
    places = [0.0] * len(order)
    for _, run in itertools.groupby(enumerate(order), key=lambda one: model[one[1]]):
        run = list(run)
        while run:
            # Those that differ by less than the noise from the smallest that is left.
            limit = min(measured[number] for _, number in run) * (1 + noise)
            equal = [(place, number) for place, number in run if measured[number] <= limit]
            run = [one for one in run if one not in equal]
            for _, number in equal:
                places[number] = statistics.fmean(place for place, _ in equal)
    return pearson(ranks(model), places)


def best_order(weights, preceding):
    """The order with the largest sum of places times weights in which each comes after all that precede it."""
    count = len(weights)
    # By set, the numbers of which come first: the largest sum, and the last of them.
    best, layer = {}, {0: (0.0, None)}
    for place in range(count):
        following = {}
        for done, (total, _) in layer.items():
            for number in range(count):
                bit = 1 << number
                if done & bit or preceding[number] & ~done:
                    continue
                found = total + place * weights[number]
                if done | bit not in following or found > following[done | bit][0]:
                    following[done | bit] = found, number
        layer = following
        best |= layer
    order, done = [], (1 << count) - 1
    while done:
        number = best[done][1]
        order.append(number)
        done &= ~(1 << number)
    return order[::-1]


def pairs(model, measured, noise):
    """Pairs that the measure orders, and how many of them the model orders otherwise or not at all."""
    decided = [
        (a, b) for a, b in itertools.permutations(range(len(model)), 2) if measured[a] * (1 + noise) < measured[b]
    ]
    return len(decided), sum(model[a] >= model[b] for a, b in decided)


def by_permutations(model, measured, noise):
    """The same as `allowed`, from all permutations."""
    preceding = before(measured, noise)
    weights = ranks(model)

    def agrees(order):
        return all(not preceding[number] & ~sum(1 << done for done in order[:at]) for at, number in enumerate(order))

    orders = filter(agrees, itertools.permutations(range(len(model))))
    return max(sum(place * weights[number] for place, number in enumerate(order)) for order in orders)


def main():
    draw = random.Random(0)
    for _ in range(300):
        count = draw.randint(2, 7)
        measured = [draw.uniform(1, 1.2) for _ in range(count)]
        model = [draw.randint(1, 6) for _ in range(count)]
        noise = draw.choice((0.0, 0.01, 0.05))
        order = best_order(ranks(model), before(measured, noise))
        found = sum(place * ranks(model)[number] for place, number in enumerate(order))
        assert math.isclose(found, by_permutations(model, measured, noise)), (model, measured, noise)
        value = allowed(model, measured, noise)
        assert -1 - 1e-9 <= value <= 1 + 1e-9
        assert math.isclose(allowed(measured, measured, noise), 1), measured
        assert math.isclose(allowed(model, [1.0] * count, 0.01), 1), model
        apart = [1.1**place for place in range(count)]
        assert math.isclose(allowed(model, apart, 0.01), plain(model, apart)), model
    print("300 random cases agree with all permutations")


if __name__ == "__main__":
    main()
