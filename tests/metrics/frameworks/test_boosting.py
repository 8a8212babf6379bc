"""XGBoost, LightGBM and CatBoost: one line a round."""

from __future__ import annotations

import pytest

from support.logs import Log, check, lines

FORTY = {"loss": (40, (1, 2.98), (40, 2.2)), "eval_loss": (40, (1, 3.08), (40, 2.3))}
LOGS: dict[str, Log] = {
    "xgboost": (
        lines("[{i}]\ttrain-logloss:{l}\teval-logloss:{e}"),
        {"last_step": 40, "ended": "running", "format": "boosting"},
        FORTY,
    ),
    "xgboost with times and deviations": (
        lines("[10:00:00] [{i}]\ttrain-rmse:{l}+0.01\ttest-rmse:{e}+0.02"),
        {"last_step": 40},
        {"rmse": (40, (1, 2.98), (40, 2.2)), "eval_rmse": (40, (1, 3.08), (40, 2.3))},
    ),
    "xgboost's sets by number": (
        lines("[{i}]\tvalidation_0-auc:0.7{i}"),
        {"last_step": 40},
        {"eval_auc": (40, (1, 0.71), (40, 0.74))},
    ),
    "lightgbm": (
        "[LightGBM] [Info] Number of positive: 100, number of negative: 200\n"
        "Training until validation scores don't improve for 50 rounds\n"
        + lines("[{i}]\ttraining's binary_logloss: {l}\tvalid_1's binary_logloss: {e}")
        + "Early stopping, best iteration is:\n"
        + lines("[{i}]\ttraining's binary_logloss: {l}\tvalid_1's binary_logloss: {e}", [30]),
        {"last_step": 40, "ended": "finished", "runs": 1},
        FORTY,
    ),
    "lightgbm's command": (
        lines(
            "[LightGBM] [Info] Iteration:{i}, training binary_logloss : {l}\n"
            "[LightGBM] [Info] Iteration:{i}, valid_1 auc : 0.81\n"
            "[LightGBM] [Info] {i}.1 seconds elapsed, finished iteration {i}"
        )
        + "[LightGBM] [Info] Finished training\n",
        {"last_step": 40, "ended": "finished"},
        {"loss": (40, (1, 2.98), (40, 2.2)), "eval_auc": (40, (1, 0.81), (40, 0.81))},
    ),
    "lightgbm over folds": (
        lines("[{i}]\tcv_agg's valid auc: 0.8{i} + 0.01"),
        {"last_step": 40},
        {"eval_auc": (40, (1, 0.81), (40, 0.84))},
    ),
    "catboost": (
        "Learning rate set to 0.05\n"
        + lines("{i}:\tlearn: {l}\ttest: {e}\tbest: {e} ({i})\ttotal: 1.2s\tremaining: 5.1s")
        + "\nbestTest = 2.3\nbestIteration = 40\n\nShrink model to first 41 iterations.\n",
        {"last_step": 40, "ended": "finished"},
        FORTY,
    ),
    "catboost's tsv": (
        "iter\tLogloss\tAUC\n" + lines("{i}\t{l}\t0.8", range(20)),
        {"last_step": 19, "format": "table"},
        {"loss": (20, (0, 3.0), (19, 2.62)), "auc": (20, (0, 0.8), (19, 0.8))},
    ),
}


@pytest.mark.parametrize("name", LOGS)
def test_what_is_printed(name: str) -> None:
    check(LOGS[name])
