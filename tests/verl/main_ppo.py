# SPDX-License-Identifier: Apache-2.0
"""verl.trainer.main_ppo with a model that has random weights and a handful of questions, both made here: how far does it
get without a GPU?  tests/verl/run.sh [--ray] -m main_ppo [OPTION=VALUE...], options of Hydra
"""

import os
import re
import runpy
import sys
import tempfile

END = "vllm version None not supported"  # so far it gets, on Ray, too, where there is no engine for the rollout
WORDS = [str(n) for n in range(40)] + ["what", "is", "plus", "?", "user", "assistant", ":"]
SPECIAL = {"unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"}
TEMPLATE = ("{% for message in messages %}{{ message['role'] }} : {{ message['content'] }} </s> {% endfor %}"
            "{% if add_generation_prompt %}assistant : {% endif %}")


def make_model(folder):
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

    known = {word: i for i, word in enumerate([*SPECIAL.values(), *WORDS])}
    tokenizer = Tokenizer(models.WordLevel(known, unk_token=SPECIAL["unk_token"]))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=tokenizer, chat_template=TEMPLATE, **SPECIAL)
    tokenizer.save_pretrained(folder)
    config = Qwen2Config(vocab_size=len(known), hidden_size=16, intermediate_size=32, num_hidden_layers=2,
                         num_attention_heads=2, num_key_value_heads=2, max_position_embeddings=128,
                         bos_token_id=tokenizer.bos_token_id, eos_token_id=tokenizer.eos_token_id,
                         pad_token_id=tokenizer.pad_token_id)
    Qwen2ForCausalLM(config).save_pretrained(folder)


def make_data(path):
    import pandas

    pandas.DataFrame([{
        "data_source": "openai/gsm8k", "prompt": [{"role": "user", "content": f"what is {i} plus {i} ?"}], "ability": "math",
        "reward_model": {"style": "rule", "ground_truth": str(2 * i)}, "extra_info": {"split": "train", "index": i}}
        for i in range(16)]).to_parquet(path)


def options(folder):
    """Makes it small: two ranks, two steps of GRPO. use_v1=False: the trainer that needs no TransferQueue."""
    return [
        f"data.train_files={folder}/data.parquet", f"data.val_files={folder}/data.parquet", "data.train_batch_size=4",
        "data.max_prompt_length=32", "data.max_response_length=16", "data.filter_overlong_prompts=False",
        "algorithm.adv_estimator=grpo", f"actor_rollout_ref.model.path={folder}",
        "actor_rollout_ref.model.use_remove_padding=False", "+actor_rollout_ref.model.override_config.attn_implementation=sdpa",
        "actor_rollout_ref.actor.strategy=fsdp2", "actor_rollout_ref.actor.ppo_mini_batch_size=4",
        "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=2", "actor_rollout_ref.actor.use_kl_loss=False",
        "actor_rollout_ref.rollout.name=vllm", "actor_rollout_ref.rollout.n=2",
        "actor_rollout_ref.rollout.tensor_model_parallel_size=1", "actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=2",
        "trainer.device=cpu", "trainer.logger=[console]", "trainer.n_gpus_per_node=2", "trainer.nnodes=1",
        "trainer.total_training_steps=2", "trainer.val_before_train=False", "trainer.save_freq=-1", "trainer.test_freq=-1",
        "trainer.use_v1=False", f"trainer.default_local_dir={folder}/checkpoints", "ray_kwargs.ray_init.num_cpus=16",
        "+ray_kwargs.ray_init.num_gpus=2", "+ray_kwargs.ray_init.include_dashboard=False", f"hydra.run.dir={folder}/hydra"]


def said_last(e):
    """The message of an exception of a worker, without its traceback."""
    lines = [line.strip() for line in str(e).splitlines() if re.match(r"\w+(\.\w+)*(Error|Exception): ", line.strip())]
    return lines[-1] if lines else f"{type(e).__name__}: {e}"


def main():
    with tempfile.TemporaryDirectory(prefix="main-ppo-") as folder:
        make_model(folder)
        make_data(f"{folder}/data.parquet")
        sys.argv[1:] = [*options(folder), *sys.argv[1:]]
        os.environ["HYDRA_FULL_ERROR"] = "1"
        try:
            runpy.run_module("verl.trainer.main_ppo", run_name="__main__", alter_sys=True)
        except Exception as e:
            said = said_last(e)
            print(f"main_ppo stops at: {said}", flush=True)
            if END not in said:
                raise


if __name__ == "__main__":
    main()
