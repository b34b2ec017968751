"""A trainer of TRL with another loss, and a training step of it on a tiny model.

    pip install ./python torch trl==1.16.0
    python python/examples/trl_custom_loss.py

TRL's metrics, its KL term and its entropy bonus stay TRL's own.
"""

from __future__ import annotations

import tempfile

from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast
from trl import GRPOConfig, GRPOTrainer

from tokenwise_rl.frameworks.trl import TokenwiseLoss


class VespoTrainer(TokenwiseLoss, GRPOTrainer):
    """VESPO's smooth weights in the place of the clip, whatever `loss_type` says; its aggregation is that of
    `loss_type`."""

    tokenwise_loss = "vespo"
    tokenwise_settings = {"k_positive": 2.0, "lambda_positive": 3.0}


def tokenizer() -> PreTrainedTokenizerFast:
    words = ["<pad>", "<eos>", *"abcdefghijklmnopqrstuvwxyz"]
    made = Tokenizer(models.WordLevel({word: place for place, word in enumerate(words)}, unk_token="<pad>"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=made, pad_token="<pad>", eos_token="<eos>")


def reward(completions: list[str], **_: object) -> list[float]:
    return [float(completion.count("a")) for completion in completions]


def main() -> None:
    words = tokenizer()
    model = GPT2LMHeadModel(GPT2Config(vocab_size=28, n_embd=16, n_layer=1, n_head=2, n_positions=64))
    with tempfile.TemporaryDirectory() as folder:
        arguments = GRPOConfig(
            output_dir=folder,
            per_device_train_batch_size=4,
            num_generations=4,
            max_completion_length=8,
            max_steps=2,
            loss_type="bnpo",
            logging_steps=1,
            use_cpu=True,
            bf16=False,
            report_to="none",
        )
        prompts = Dataset.from_dict({"prompt": ["a b c", "d e f", "x y z", "m n o"]})
        trainer = VespoTrainer(
            model=model, reward_funcs=reward, args=arguments, train_dataset=prompts, processing_class=words
        )
        trainer.train()
        print({key: value for key, value in trainer.state.log_history[0].items() if key in ("loss", "entropy", "reward")})


if __name__ == "__main__":
    main()
