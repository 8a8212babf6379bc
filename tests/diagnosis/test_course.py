import math
import random
from itertools import pairwise

from support.views import series
from trainwarden.diagnosis.course import course, course_of, current_run, even, moved, noise, turned
from trainwarden.metrics.series import Point


def points(values: list[float]) -> list[Point]:
    return [Point(i, v, i) for i, v in enumerate(values)]


def test_course_of_a_fall() -> None:
    found = course(series("loss", [10 - 0.1 * i for i in range(60)]), "decrease")
    assert found is not None
    assert found.early > found.recent
    assert found.gained > 5
    assert abs(found.lost) < 0.3


def test_direction_turns_better_into_lower() -> None:
    found = course(series("reward", [0.1 * i for i in range(60)]), "increase")
    assert found is not None
    assert found.net > 0
    assert found.best > 5


def test_too_few_points_have_no_course() -> None:
    assert course_of(points([1.0] * 5), "decrease") is None
    assert course(None, "decrease") is None


def test_resumed_run_drops_what_it_wrote_over() -> None:
    kept = current_run([Point(s, 1.0, 0) for s in (1, 2, 3, 4, 5, 3, 4, 5, 6)])
    assert [p.step for p in kept] == [1, 2, 3, 3, 4, 5, 6]
    restarted = current_run([Point(s, 1.0, 0) for s in (10, 20, 30, 1, 2, 3)])
    assert [p.step for p in restarted] == [1, 2, 3]


def test_even_spans_the_run_and_ends_at_the_last_point() -> None:
    long = series("loss", [1 / (i + 1) for i in range(10_000)])
    kept = even(long)
    assert kept[0].step == 1
    assert kept[-1].step == 10_000
    assert len(kept) <= 2049
    gaps = {round(b.step - a.step) for a, b in pairwise(kept[:-1])}
    assert len(gaps) == 1


def test_noise_ignores_level_and_single_outliers() -> None:
    rng = random.Random(1)
    values = [5 - 0.01 * i + rng.gauss(0, 0.1) for i in range(200)]
    values[50] = 1e6
    assert 0.07 < noise(values) < 0.14


def test_moved_sees_trends_and_jumps_but_no_noise() -> None:
    rng = random.Random(2)
    assert moved(points([0.05 * i + rng.gauss(0, 1) for i in range(100)])) == 1
    assert moved(points([(3.0 if i < 50 else 0.0) + rng.gauss(0, 0.5) for i in range(100)])) == -1
    flat = [moved(points([random.Random(s).gauss(0, 1) for _ in range(80)])) for s in range(40)]
    assert flat.count(0) >= 36
    assert not math.isnan(noise([0.0] * 10))


def test_moved_is_not_fooled_by_wandering() -> None:
    found = []
    for seed in range(60):
        rng = random.Random(seed)
        level, values = 0.0, []
        for _ in range(60):
            level = 0.9 * level + rng.gauss(0, 1)
            values.append(level)
        found.append(moved(points(values)))
    assert found.count(0) >= 57


def test_moved_sees_a_short_steep_curve() -> None:
    rng = random.Random(3)
    values = [1.6 + 1.9 * math.exp(-i / 5) + rng.gauss(0, 0.03) for i in range(30)]
    assert moved(points(values)) == -1


def test_turned_is_where_the_level_was_left_for_good() -> None:
    values = [10.0 + (i % 3) for i in range(40)] + [2.0 + (i % 2) for i in range(20)]
    values[12] = 1.0
    found = course_of([Point(float(i), v, 0) for i, v in enumerate(values)], "increase")
    assert found is not None
    assert abs(turned(found, found.early) - 40) <= 2
