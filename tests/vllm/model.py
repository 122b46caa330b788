"""Writes the folder of a small Llama for `vllm serve --load-format dummy`: its configuration and a tokenizer of
8,000 words. There are no weights.

    python3 model.py DIR"""

import json
import os
import sys

LLAMA = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 256,
         "num_attention_heads": 4, "num_key_value_heads": 4, "head_dim": 64, "intermediate_size": 256,
         "num_hidden_layers": 2, "vocab_size": 8000, "max_position_embeddings": 8192, "hidden_act": "silu",
         "rms_norm_eps": 1e-5, "bos_token_id": 1, "eos_token_id": 2, "tie_word_embeddings": False,
         "torch_dtype": "float32"}
WORDS = ["<unk>", "<s>", "</s>"] + [f"w{i}" for i in range(3, 8000)]
TOKENIZER = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
             "pre_tokenizer": {"type": "WhitespaceSplit"}, "post_processor": None, "decoder": None,
             "model": {"type": "WordLevel", "vocab": {word: i for i, word in enumerate(WORDS)}, "unk_token": "<unk>"}}
WRAPPER = {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "<unk>", "bos_token": "<s>",
           "eos_token": "</s>", "model_max_length": 8192}


def main(folder):
    os.makedirs(folder, exist_ok=True)
    for name, content in (("config", LLAMA), ("tokenizer", TOKENIZER), ("tokenizer_config", WRAPPER)):
        with open(os.path.join(folder, name + ".json"), "w", encoding="ascii") as file:
            json.dump(content, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
