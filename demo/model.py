"""A causal character model in plain numpy: forward, backward by hand, Adam."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
Params = dict[str, Floats]


class CharModel:
    """Predicts each character from the `context` before it (Bengio et al., JMLR 2003).

    Embeddings of the window, concatenated, pass two ReLU layers, the second with a skip.
    """

    def __init__(
        self, vocab_size: int, context: int, embed_dim: int, hidden_dim: int, seed: int
    ) -> None:
        rng = np.random.default_rng(seed)

        def weight(rows: int, columns: int, gain: float = 2.0) -> Floats:
            return rng.normal(0, (gain / rows) ** 0.5, (rows, columns)).astype(np.float32)

        self.vocab_size = vocab_size
        self.params: Params = {
            "embed": rng.normal(0, 1, (vocab_size, embed_dim)).astype(np.float32),
            "w1": weight(context * embed_dim, hidden_dim),
            "b1": np.zeros(hidden_dim, np.float32),
            "w2": weight(hidden_dim, hidden_dim),
            "b2": np.zeros(hidden_dim, np.float32),
            "out": weight(hidden_dim, vocab_size, 0.01),
            "bias": np.zeros(vocab_size, np.float32),
        }

    def forward(self, windows: Ints, targets: Ints) -> tuple[float, float, dict[str, Any]]:
        """Cross-entropy (nats) and accuracy of `targets` (n,) after `windows` (n, context).

        The third item holds what `backward` needs.
        """
        p = self.params
        x = p["embed"][windows].reshape(len(windows), -1)
        h1 = np.maximum(x @ p["w1"] + p["b1"], 0)
        a2 = h1 @ p["w2"] + p["b2"]
        h2 = np.maximum(a2, 0) + h1
        logits = h2 @ p["out"] + p["bias"]
        logits -= logits.max(axis=1, keepdims=True)
        probabilities = np.exp(logits)
        total = probabilities.sum(axis=1, keepdims=True)
        probabilities /= total
        rows = np.arange(len(targets))
        loss = float(np.mean(np.log(total[:, 0]) - logits[rows, targets]))
        accuracy = float(np.mean(logits.argmax(axis=1) == targets))
        kept = {"x": x, "h1": h1, "a2": a2, "h2": h2, "probabilities": probabilities}
        return loss, accuracy, {**kept, "windows": windows, "targets": targets}

    def backward(self, kept: dict[str, Any]) -> Params:
        """Gradients of the mean loss for every parameter."""
        p = self.params
        count, context = kept["windows"].shape
        d_logits = kept["probabilities"]
        d_logits[np.arange(count), kept["targets"]] -= 1
        d_logits /= count
        d_h2 = d_logits @ p["out"].T
        d_a2 = d_h2 * (kept["a2"] > 0)
        d_a1 = (d_a2 @ p["w2"].T + d_h2) * (kept["h1"] > 0)
        d_x = (d_a1 @ p["w1"].T).reshape(count * context, -1)
        one_hot = np.eye(self.vocab_size, dtype=np.float32)[kept["windows"].reshape(-1)]
        return {
            "embed": one_hot.T @ d_x,
            "w1": kept["x"].T @ d_a1,
            "b1": d_a1.sum(axis=0),
            "w2": kept["h1"].T @ d_a2,
            "b2": d_a2.sum(axis=0),
            "out": kept["h2"].T @ d_logits,
            "bias": d_logits.sum(axis=0),
        }


class Adam:
    """Adam with bias correction (Kingma and Ba, 2015); updates `params` in place."""

    def __init__(self, params: Params, betas: tuple[float, float] = (0.9, 0.99)) -> None:
        self.params = params
        self.betas = betas
        self.first = {name: np.zeros_like(value) for name, value in params.items()}
        self.second = {name: np.zeros_like(value) for name, value in params.items()}
        self.updates = 0

    def update(self, grads: Params, learning_rate: float) -> None:
        """One step downhill."""
        b1, b2 = self.betas
        self.updates += 1
        scale = learning_rate * (1 - b2**self.updates) ** 0.5 / (1 - b1**self.updates)
        for name, grad in grads.items():
            self.first[name] += (1 - b1) * (grad - self.first[name])
            self.second[name] += (1 - b2) * (grad * grad - self.second[name])
            self.params[name] -= scale * self.first[name] / (np.sqrt(self.second[name]) + 1e-8)


def clip(grads: Params, limit: float) -> float:
    """Scale the gradients down to a global norm of `limit`; returns the norm before."""
    norm = float(np.sqrt(sum(float(np.sum(grad * grad)) for grad in grads.values())))
    if norm > limit:
        for grad in grads.values():
            grad *= limit / norm
    return norm
