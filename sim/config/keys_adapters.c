/* The keys of low-rank adapters: what they are, and how the server keeps and computes them. */
#include "config/key_fields.h"

static const struct ifl_param adapters_fields[] = {
    TEXT("ranks", adapters.ranks, "16",
         "ranks of the trace's adapters, numbers with commas, dealt out in turn: adapter N has the "
         "one at place N modulo their count; adapters with other names than numbers count in the "
         "order of the trace"),
    CHOICE("matrices", adapters.matrices, "qv|qkvo|all", 1,
           "of each layer that have one: query and value; these, key and output; these and the "
           "MLP's"),
};

const struct key_table adapters_keys = {FIELDS(adapters)};

static const struct ifl_param adapter_serving_fields[] = {
    CHOICE(
        "memory", serving.adapters.memory, "slots|pool", ADAPTER_SLOTS,
        "beside the K/V, in max_loras slots (vLLM), or in blocks of the K/V pool while a request "
        "on the device is computed with them (S-LoRA)"),
    INT("max_loras", serving.adapters.max_loras, 0, 0, 1 << 20, "adapters",
        "slots on the device; admit policy adapter-slots passes requests of others over; 0: one "
        "for each adapter"),
    INT("max_cpu_loras", serving.adapters.max_cpu_loras, 0, 0, 1 << 20, "adapters",
        "slots in host memory, empty at first; the others are on the disk; 0: all adapters are in "
        "host memory"),
    INT("max_rank", serving.adapters.max_rank, 0, 0, 4096, "",
        "the kernels compute as if each had that rank (vLLM's max_lora_rank); 0: its own"),
    CHOICE(
        "compute", serving.adapters.compute, "batched|padded|merged", 0,
        "all in two kernels a matrix (Punica, S-LoRA, vLLM); matrices copied together and padded "
        "to the largest rank; added to the weights as they are loaded (PEFT)"),
    REAL("launch_us", serving.adapters.launch_us, 0, 0, 1e6, "us",
         "of a kernel of theirs; 0: that of the profile's element-wise kernels"),
    REAL("load_s", serving.adapters.load_s, 0, 0, 1e6, "s",
         "of a load to the device, beside its bytes; the step waits for it"),
    INT("load_copies", serving.adapters.load_copies, 1, 1, 100, "",
        "times that the bytes of a load cross the link to the host"),
    REAL("host_gb_per_s", serving.adapters.host_gb_per_s, 0, 0, 1e6, "GB/s",
         "of that link; 0: that of the profile's swap_in"),
    REAL("disk_gb_per_s", serving.adapters.disk_gb_per_s, 0, 0, 1e6, "GB/s",
         "of the disk; 0: it takes no time"),
};

const struct key_table adapter_serving_keys = {FIELDS(adapter_serving)};
