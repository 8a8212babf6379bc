"""Log formats. Each is one file here and one entry below; packages add theirs as plug-ins."""

from __future__ import annotations

from trainwarden.metrics.formats.allennlp import TrainAndEval
from trainwarden.metrics.formats.bars import Tqdm
from trainwarden.metrics.formats.base import Line, LineFormat, Pair, Row
from trainwarden.metrics.formats.blocks import Block
from trainwarden.metrics.formats.boosting import Boosting
from trainwarden.metrics.formats.boxes import Box, Piped
from trainwarden.metrics.formats.coco import CocoEval
from trainwarden.metrics.formats.deepspeed import DeepSpeedChat
from trainwarden.metrics.formats.dicts import PrintedDict
from trainwarden.metrics.formats.dll import DLLogger
from trainwarden.metrics.formats.espnet import ESPnet
from trainwarden.metrics.formats.estimator import Estimator
from trainwarden.metrics.formats.jsonl import JsonLines
from trainwarden.metrics.formats.keras import Keras
from trainwarden.metrics.formats.megatron import MegatronEval
from trainwarden.metrics.formats.mllog import MLLog
from trainwarden.metrics.formats.mmengine import MMEngine
from trainwarden.metrics.formats.nemo import NeMo
from trainwarden.metrics.formats.paddle import PaddleTensor
from trainwarden.metrics.formats.pairs import Pairs
from trainwarden.metrics.formats.rich import Rich
from trainwarden.metrics.formats.rounds import Rounds
from trainwarden.metrics.formats.ruled import Ruled
from trainwarden.metrics.formats.sentences import Sentences
from trainwarden.metrics.formats.steplines import StepLines
from trainwarden.metrics.formats.tables import Table
from trainwarden.metrics.formats.yolo import Yolo

__all__ = ["Line", "LineFormat", "Pair", "Row", "builtin_formats"]


def builtin_formats() -> tuple[LineFormat, ...]:
    """The formats that come with trainwarden, the most particular first."""
    return (
        *(
            Yolo(),
            Tqdm(),
            DLLogger(),
            PrintedDict(),
            MLLog(),
            ESPnet(),
            CocoEval(),
            PaddleTensor(),
            JsonLines(),
            Keras(),
            Boosting(),
            Sentences(),
            Ruled(),
            Table(),
        ),
        *(Rich(), Rounds(), StepLines(), DeepSpeedChat(), TrainAndEval(), Piped(), Box()),
        *(Block(), NeMo(), Estimator(), MMEngine(), MegatronEval(), Pairs()),
    )
