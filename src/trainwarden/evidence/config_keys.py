"""The names that trainers' configs give to the facts of a run, most telling first.

An entry matches the end of a config's dotted key (`optimizer.lr` matches
`trainer.optimizer.lr`); one that begins with `^` matches only a key of the top level. Where
several keys match one entry, the least nested one counts. The names are those of Hugging Face
TrainingArguments and TRL, Axolotl, LLaMA-Factory, nanoGPT, torchtitan, Lightning CLI, DeepSpeed,
Megatron-LM, NeMo, nanotron, litgpt, OLMo, llm-foundry, levanter, torchtune, fairseq, verl,
mmengine, detectron2, timm, Ultralytics, Stable-Baselines3, Keras, diffusers and generic ones.
"""

from __future__ import annotations

NAMES: dict[str, tuple[str, ...]] = {
    "max_steps": (
        "max_steps", "max_train_steps", "num_train_steps", "total_training_steps", "train_steps",
        "training.steps", "train.steps", "trainer.steps", "max_iters", "max_iter", "train_iters",
        "max_update", "max_updates", "num_training_steps", "num_iterations", "max_iterations",
        "total_steps", "num_steps", "total_num_steps", "n_steps_total", "total_iterations",
        "training_steps", "total_iters", "num_iters", "total_timesteps", "n_timesteps",
        "num_updates", "^iterations", "max_duration", "^steps",
    ),
    "epochs": (
        "num_train_epochs", "num_epochs", "max_epochs", "max_epoch", "total_epochs", "n_epochs",
        "train_epochs", "training_epochs", "max_num_epochs", "nb_epochs", "nb_epoch", "epochs",
        "num_epoch", "max_duration", "^epoch",
    ),
    "steps_per_epoch": (
        "steps_per_epoch", "max_steps_per_epoch", "iters_per_epoch", "batches_per_epoch",
        "limit_train_batches", "num_batches_per_epoch", "train_steps_per_epoch",
    ),
    "global_batch": (
        "global_batch_size", "global_train_batch_size", "train_batch_size", "total_batch_size",
        "effective_batch_size", "ims_per_batch",
    ),
    "device_batch": (
        "per_device_train_batch_size", "train_micro_batch_size_per_gpu", "local_batch_size",
        "micro_batch_size", "device_train_microbatch_size", "per_gpu_train_batch_size",
        "batch_size_per_gpu", "batch_size_per_device", "samples_per_gpu", "microbatch_size",
        "train_dataloader.batch_size", "data.batch_size", "train.batch_size",
        "training.batch_size", "batch_size", "^batch", "^bs",
    ),
    "accumulation": (
        "gradient_accumulation_steps", "accumulate_grad_batches", "grad_accumulation_steps",
        "batch_accumulation_per_replica", "gradient_accumulation_iters", "accumulation_steps",
        "grad_accum_steps", "grad_accum", "accumulative_counts", "update_freq",
        "iters_to_accumulate", "accum_grad", "gradient_accumulation",
    ),
    "sequence_length": (
        "max_seq_length", "max_seq_len", "sequence_length", "sequence_len", "seq_length",
        "seq_len", "cutoff_len", "block_size", "max_sequence_length", "context_length",
        "max_length", "model_max_length", "ctx_len", "n_ctx", "tokens_per_sample",
    ),
    "learning_rate": (
        "actor.optim.lr", "policy.optimizer.lr", "learning_rate", "optimizer.lr",
        "optimizer.params.lr", "optimizer.init_args.lr", "optim.lr", "optim_wrapper.optimizer.lr",
        "optimizer.base_lr", "base_lr", "peak_lr", "max_lr", "lr", "lr0", "init_lr",
        "initial_lr", "warmup_max_lr", "base_learning_rate", "peak_learning_rate", "lr_max",
        "optimizer.learning_rate_scheduler.learning_rate", "optim_conf.lr", "step_size_lr",
    ),
    "min_learning_rate": (
        "min_lr", "min_learning_rate", "lr_min", "eta_min", "min_decay_lr", "end_learning_rate",
        "lr_end", "end_lr", "final_lr", "decay_lr_to",
    ),
    "min_lr_ratio": (
        "min_lr_rate", "min_lr_ratio", "min_lr_factor", "lr_min_ratio", "alpha_f",
        "cosine_min_lr_ratio", "lrf",
    ),
    "warmup_steps": (
        "warmup_steps", "num_warmup_steps", "lr_warmup_steps", "warmup_iters", "lr_warmup_iters",
        "warmup_num_steps", "warmup_updates", "warmup_iterations", "t_warmup", "warmup_step",
        "n_warmup_steps", "optimizer.warmup", "lr_scheduler.warmup", "scheduler.warmup",
    ),
    "warmup_ratio": (
        "warmup_ratio", "lr_warmup_fraction", "warmup_fraction", "warmup_proportion",
        "lr_warmup_steps_ratio", "warmup_steps_ratio", "lr_warmup_ratio", "warmup_frac",
        "pct_start",
    ),
    "warmup_epochs": ("warmup_epochs", "num_warmup_epochs", "warmup_epoch"),
    "schedule": (
        "lr_scheduler_type", "lr_decay_style", "lr_schedule", "lr_scheduler.decay_type",
        "lr_scheduler.type", "lr_scheduler.name", "lr_scheduler._component_",
        "lr_scheduler._target_", "lr_scheduler.class_path", "lr_scheduler", "scheduler.type",
        "scheduler.name", "scheduler._target_", "scheduler.class_path", "sched.name", "sched",
        "schedule", "scheduler", "lr_policy", "lr_config.policy", "warmup_style",
        "learning_rate_schedule", "lr_scheduler_name",
    ),
    "vocab_size": (
        "padded_vocab_size", "vocab_size", "n_vocab", "vocabulary_size", "num_tokens_in_vocab",
        "num_embeddings",
    ),
    "num_classes": (
        "num_classes", "num_labels", "n_classes", "nb_classes", "class_num", "num_class", "nc",
        "n_labels", "^classes", "id2label", "class_names",
    ),
    "log_every": (
        "logging_steps", "log_every_n_steps", "log_interval", "log_every", "log_freq",
        "steps_per_print", "logger.interval", "iteration_step_info_interval", "print_freq",
        "print_step", "print_every", "log_steps", "logging_interval", "log_period",
        "log_every_steps", "summary_freq",
    ),
    "save_every": (
        "save_steps", "save_interval", "checkpointing_steps", "checkpoint_interval",
        "every_n_train_steps", "save_every", "save_freq", "checkpoint.interval",
        "checkpoint_every", "save_step", "checkpoint_period", "save_interval_updates",
        "checkpoint_every_n_steps", "ckpt_interval", "checkpoint.every", "saving_steps",
        "save_every_n_steps",
    ),
    "eval_every": (
        "eval_steps", "eval_interval", "eval_every", "test_freq", "eval_freq", "eval_period",
        "val_interval", "val_check_interval", "validation_steps", "validate_interval_updates",
        "evaluation_interval", "val_every", "eval_iters_interval", "evaluation_every",
        "validation.freq",
    ),
    "output_dir": (
        "output_dir", "out_dir", "default_root_dir", "default_local_dir", "checkpoint.save_dir",
        "checkpoint_dir", "checkpoints_path", "save_dir", "work_dir", "dump_folder", "save_folder",
        "output_folder", "output_path", "logging_dir_root", "exp_dir", "save_path", "ckpt_dir",
        "checkpoint.folder", "checkpoint_path", "run_dir", "workdir", "^save", "^output",
    ),
    "precision": (
        "mixed_precision", "precision", "amp_dtype", "torch_dtype", "mixed_precision_param",
        "dtype", "param_dtype",
    ),
    "world_size": ("world_size", "num_processes", "n_gpus", "num_gpus", "ngpu"),
    "devices_per_node": ("n_gpus_per_node", "gpus_per_node", "nproc_per_node", "devices"),
    "nodes": ("nnodes", "num_nodes", "n_nodes", "num_machines"),
    "task": ("task_type", "task_name", "task", "stage", "problem_type", "^objective"),
    "metric_for_best_model": (
        "metric_for_best_model", "best_metric", "eval_metric", "monitor", "save_best",
        "best_checkpoint_metric", "main_metric", "metric_to_track",
    ),
    "greater_is_better": (
        "greater_is_better", "maximize_best_checkpoint_metric", "higher_is_better",
    ),
}  # fmt: skip

OTHER_SECTIONS = frozenset(
    {
        "eval", "evaluation", "val", "valid", "validation", "test", "testing", "inference",
        "generation", "sampling", "predict", "eval_dataloader", "val_dataloader",
        "test_dataloader", "val_cfg", "test_cfg", "eval_loader", "test_dataset", "val_dataset",
        "wandb", "tokenizer", "teacher", "ref", "reference", "critic", "reward_model",
        "discriminator", "rollout", "eval_config", "teacher_model", "draft", "vllm",
        "generation_config",
    }
)  # fmt: skip
"""Sections that describe something beside the training itself: their keys come last."""

SCHEDULES: tuple[tuple[str, str], ...] = (
    ("cosine_with_min_lr", "cosine_with_min_lr"),
    ("cosine_warmup_with_min_lr", "cosine_with_min_lr"),
    ("restart", "cosine_with_restarts"),
    ("warmrestarts", "cosine_with_restarts"),
    ("warmupdecay", "linear"),
    ("warmupcosine", "cosine"),
    ("cos", "cosine"),
    ("warmup_stable_decay", "wsd"),
    ("wsd", "wsd"),
    ("constant_with_warmup", "constant_with_warmup"),
    ("constantwithwarmup", "constant_with_warmup"),
    ("warmuplr", "constant_with_warmup"),
    ("inverse", "inverse_sqrt"),
    ("rsqrt", "inverse_sqrt"),
    ("noam", "noam"),
    ("onecycle", "one_cycle"),
    ("one_cycle", "one_cycle"),
    ("plateau", "reduce_on_plateau"),
    ("poly", "polynomial"),
    ("multistep", "multistep"),
    ("exponential", "exponential"),
    ("linear", "linear"),
    ("constant", "constant"),
    ("fixed", "constant"),
    ("step", "step"),
)
"""What a scheduler's name contains, and what it is then called here; the first that fits."""

TASKS: dict[str, str] = {
    "causal_lm": "lm",
    "causallm": "lm",
    "lm": "lm",
    "language_modeling": "lm",
    "sft": "lm",
    "pt": "lm",
    "seq_cls": "classification",
    "sequenceclassification": "classification",
    "imageclassification": "classification",
    "single_label_classification": "classification",
    "classification": "classification",
    "classify": "classification",
    "regression": "regression",
    "ppo": "rl",
    "grpo": "rl",
    "rl": "rl",
    "dpo": "preference",
    "kto": "preference",
    "orpo": "preference",
    "rm": "reward_model",
}
"""What configs call the task, and what it is called here."""
