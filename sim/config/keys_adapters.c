/* The keys of low-rank adapters: what they are, and how the server keeps and computes them. */
#include "config/key_fields.h"

static const struct ifl_param adapters_fields[] = {
    TEXT("ranks", adapters.ranks, "16",
         "ranks of the trace's adapters, separated by commas; adapter N has the rank at place N "
         "modulo their count; adapters whose names are not numbers are numbered in the order of "
         "the trace"),
    CHOICE("matrices", adapters.matrices, "qv|qkvo|all", 1,
           "matrices of each layer with adapters: query and value; these, key and output; these "
           "and the MLP's"),
};

const struct key_table adapters_keys = {FIELDS(adapters)};

static const struct ifl_param adapter_serving_fields[] = {
    CHOICE("memory", serving.adapters.memory, "slots|pool", ADAPTER_SLOTS,
           "slots: adapters are in max_loras slots beside the K/V pool (vLLM); pool: in blocks of "
           "the K/V pool while a request on the device uses them (S-LoRA)"),
    INT("max_loras", serving.adapters.max_loras, 0, 0, 1 << 20, "adapters",
        "slots on the device; with admit policy adapter-slots a request whose adapter gets none is "
        "skipped; 0: one per adapter"),
    INT("max_cpu_loras", serving.adapters.max_cpu_loras, 0, 0, 1 << 20, "adapters",
        "slots in host memory, empty at first; other adapters are on disk; 0: all adapters are in "
        "host memory"),
    INT("max_rank", serving.adapters.max_rank, 0, 0, 4096, "",
        "rank with which the kernels compute every adapter (vLLM's max_lora_rank); 0: its own"),
    CHOICE("compute", serving.adapters.compute, "batched|padded|merged", 0,
           "batched: two kernels per matrix for all adapters (Punica, S-LoRA, vLLM); padded: "
           "adapters are copied together, padded to the largest rank; merged: added to the weights "
           "when loaded (PEFT)"),
    REAL("launch_us", serving.adapters.launch_us, 0, 0, 1e6, "us",
         "launch time of an adapter kernel; 0: that of the profile's element-wise kernels"),
    REAL("load_s", serving.adapters.load_s, 0, 0, 1e6, "s",
         "time of a load to the device in addition to its bytes; the step waits for it"),
    INT("load_copies", serving.adapters.load_copies, 1, 1, 100, "",
        "number of times that the bytes of a load cross the host link"),
    REAL("host_gb_per_s", serving.adapters.host_gb_per_s, 0, 0, 1e6, "GB/s",
         "rate of the host link; 0: that of the profile's swap_in"),
    REAL("disk_gb_per_s", serving.adapters.disk_gb_per_s, 0, 0, 1e6, "GB/s",
         "rate of reads from disk; 0: they take no time"),
};

const struct key_table adapter_serving_keys = {FIELDS(adapter_serving)};
