/* The keys of `serving.kv.tiers`: host memory, disk and a store below the device. */
#include "config/key_fields.h"

const struct key_table tiers_keys = {0};

#define TIER_FIELDS(of)                                                                            \
    INT("blocks", serving.kv.tiers[of].blocks, 0, 0, 1000000000, "blocks",                         \
        "size in K/V blocks; if blocks, gib and device_ratio are 0, there is no such tier"),       \
        REAL("gib", serving.kv.tiers[of].gib, 0, 0, 1e7, "GiB", "its size, in place of blocks"),   \
        REAL("device_ratio", serving.kv.tiers[of].device_ratio, 0, 0, 1e4, "",                     \
             "its size as a multiple of the device's blocks, in place of blocks (SGLang's "        \
             "hicache_ratio)"),                                                                    \
        TIME("latency_s", serving.kv.tiers[of].link.latency_ns, 0, 0, 3600,                        \
             "latency of its link: from the start of a load until its first byte has come"),       \
        REAL("gb_per_s", serving.kv.tiers[of].gb_per_s, 0, 0, 1e9, "GB/s",                         \
             "rate of its link to each replica and of its link from each; 0: bytes take no time. " \
             "If latency_s and piece_s are 0, too, loads and stores take no time"),                \
        TIME("piece_s", serving.kv.tiers[of].link.piece_ns, 0, 0, 1,                               \
             "time of each piece of a load in addition to its bytes"),                             \
        CHOICE(                                                                                    \
            "pieces", serving.kv.tiers[of].pieces, "merged|blocks|layers", PIECES_MERGED,          \
            "a load has one piece; one per block; or, per block, K and V of each layer and GPU"),  \
        CHOICE(                                                                                    \
            "sharing", serving.kv.tiers[of].link.sharing, "fifo|shared|frozen|unshared",           \
            LINK_FIFO,                                                                             \
            "loads run one after the other; share the link equally; keep the share that they got " \
            "at their start, among the loads under way (BLIS); do not slow each other down"),      \
        INT("unit_tokens", serving.kv.tiers[of].unit_tokens, 0, 0, 1048576, "tokens",              \
            "K/V is stored and loaded in units of this size, whole blocks; 0: one block"),         \
        INT("min_tokens", serving.kv.tiers[of].min_tokens, 0, 0, ANY, "tokens",                    \
            "a hit with fewer tokens is computed, not loaded"),                                    \
        CHOICE("stores", serving.kv.tiers[of].stores, "computed|evicted", TIER_STORES_COMPUTED,    \
               "computed: full units are stored when a step has computed them (write-through); "   \
               "evicted: blocks are stored when the tier above, first the device, evicts them "    \
               "(write-back)"),                                                                    \
        INT("store_after", serving.kv.tiers[of].store_after, 1, 1, ANY, "requests",                \
            "stores computed: a unit is stored once this many requests have had it (vLLM's "       \
            "store_threshold, SGLang's write_through_selective: 2)"),                              \
        BOOL("answers", serving.kv.tiers[of].answers, false,                                       \
             "stores computed: K/V of answers is stored, too, when they end; false: only of "      \
             "prompts"),                                                                           \
        CHOICE("loads", serving.kv.tiers[of].loads, "apart|before|layers", TIER_LOADS_APART,       \
               "apart: a request waits for its load while steps go on; before: the step that "     \
               "computes it waits; layers: that step begins during the load, layer by layer"),     \
        BOOL("keeps", serving.kv.tiers[of].keeps, true,                                            \
             "loaded units stay in the tier; false: they move to the device"),                     \
        CHOICE("evict", serving.kv.tiers[of].evicts, "lru|lfu|fifo|mru|filo|slru",                 \
               TIER_EVICTS_LRU,                                                                    \
               "unit that is evicted first: used least recently; used by the fewest requests; "    \
               "stored first; used most recently; stored last; as lru, but units of only one "     \
               "request before all others"),                                                       \
        BOOL("begin_first", serving.kv.tiers[of].begin_first, false,                               \
             "of units that were stored together, the beginning of the prompt is evicted first, "  \
             "as it was stored first (LMCache); false: the end")

/* Of the tiers below the first. */
#define PREFETCH_FIELDS(of)                                                                        \
    CHOICE("prefetch", serving.kv.tiers[of].prefetch, "none|best_effort|wait_complete|timeout",    \
           TIER_LOADS_ITSELF,                                                                      \
           "a waiting request's K/V is copied to the tier host from its arrival on. When its "     \
           "turn comes, it takes what has come (best_effort), or is skipped until all has come "   \
           "(wait_complete), at most for prefetch_timeout_s (timeout). none: K/V is loaded when "  \
           "the request starts"),                                                                  \
        INT("prefetch_tokens", serving.kv.tiers[of].prefetch_tokens, 256, 0, ANY, "tokens",        \
            "least tokens of a prompt, in whole blocks and without its last one, after those in "  \
            "nearer tiers (stored or not); with fewer it is not prefetched"),                      \
        TIME("prefetch_timeout_s", serving.kv.tiers[of].prefetch_timeout_ns, 1, 0, A_BILLION,      \
             "prefetch timeout: how long a request is skipped once it could start"),               \
        REAL("prefetch_token_s", serving.kv.tiers[of].prefetch_token_s, 0.000244140625, 0, 3600,   \
             "s", "additional time for each token after those in nearer tiers")

static const struct ifl_param tier_host_fields[] = {TIER_FIELDS(TIER_HOST)};
static const struct ifl_param tier_disk_fields[] = {TIER_FIELDS(TIER_DISK),
                                                    PREFETCH_FIELDS(TIER_DISK)};
static const struct ifl_param tier_store_fields[] = {
    TIER_FIELDS(TIER_STORE),
    PREFETCH_FIELDS(TIER_STORE),
    REAL("hit_frac", serving.kv.tiers[TIER_STORE].hit_frac, 0, 0, 1, "of each prompt",
         "beginning of the prompt, in whole blocks, that is there from the start of the run: a "
         "store that others fill"),
};

const struct key_table tier_host_keys = {FIELDS(tier_host)};
const struct key_table tier_disk_keys = {FIELDS(tier_disk)};
const struct key_table tier_store_keys = {FIELDS(tier_store)};
