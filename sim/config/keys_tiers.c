/* The keys of `serving.kv.tiers`: host memory, disk and a store below the device. */
#include "config/key_fields.h"

const struct key_table tiers_keys = {0};

#define TIER_FIELDS(of)                                                                            \
    INT("blocks", serving.kv.tiers[of].blocks, 0, 0, 1000000000, "blocks",                         \
        "K/V blocks that it holds; 0, with gib and device_ratio 0: there is none"),                \
        REAL("gib", serving.kv.tiers[of].gib, 0, 0, 1e7, "GiB", "its size, in place of blocks"),   \
        REAL("device_ratio", serving.kv.tiers[of].device_ratio, 0, 0, 1e4, "",                     \
             "its size over the device's blocks, in place of blocks (SGLang's hicache_ratio)"),    \
        TIME("latency_s", serving.kv.tiers[of].link.latency_ns, 0, 0, 3600,                        \
             "of its link, from the start of a load until its first byte has come"),               \
        REAL("gb_per_s", serving.kv.tiers[of].gb_per_s, 0, 0, 1e9, "GB/s",                         \
             "rate of its link to each replica, and of that from it; 0: bytes take no time. With " \
             "latency_s and piece_s 0, too, what it holds is there at once"),                      \
        TIME("piece_s", serving.kv.tiers[of].link.piece_ns, 0, 0, 1,                               \
             "that each piece of a load takes beside its bytes"),                                  \
        CHOICE("pieces", serving.kv.tiers[of].pieces, "merged|blocks|layers", PIECES_MERGED,       \
               "a load is one piece; one a block; for each block, K and V of each layer and GPU"), \
        CHOICE("sharing", serving.kv.tiers[of].link.sharing, "fifo|shared|frozen|unshared",        \
               LINK_FIFO,                                                                          \
               "loads go one after the other; share the link equally; keep the share that they "   \
               "began with, of all that have not come (BLIS); do not hinder one another"),         \
        INT("unit_tokens", serving.kv.tiers[of].unit_tokens, 0, 0, 1048576, "tokens",              \
            "K/V is stored and loaded in units of so many tokens, of whole blocks; 0: a block"),   \
        INT("min_tokens", serving.kv.tiers[of].min_tokens, 0, 0, ANY, "tokens",                    \
            "fewer are computed rather than loaded"),                                              \
        CHOICE("stores", serving.kv.tiers[of].stores, "computed|evicted", TIER_STORES_COMPUTED,    \
               "K/V of full units as a step has computed it (write through), or blocks as the "    \
               "tier above, first of all the device, evicts them (write back)"),                   \
        INT("store_after", serving.kv.tiers[of].store_after, 1, 1, ANY, "requests",                \
            "stores computed: units that so many requests have had (vLLM's store_threshold, "      \
            "SGLang's write_through_selective: 2)"),                                               \
        BOOL("answers", serving.kv.tiers[of].answers, false,                                       \
             "stores computed: K/V of answers, too, as they end; false: of prompts alone"),        \
        CHOICE("loads", serving.kv.tiers[of].loads, "apart|before|layers", TIER_LOADS_APART,       \
               "a request that loads waits while steps go on; the step that computes it begins "   \
               "when all has come; layer by layer beside that step"),                              \
        BOOL("keeps", serving.kv.tiers[of].keeps, true,                                            \
             "what is loaded stays in the tier; false: it moves to the device"),                   \
        CHOICE(                                                                                    \
            "evict", serving.kv.tiers[of].evicts, "lru|lfu|fifo|mru|filo|slru", TIER_EVICTS_LRU,   \
            "the unit that goes first: used least recently; had by the fewest requests; stored "   \
            "first; used most recently; stored last; as lru, those of one request before all "     \
            "others"),                                                                             \
        BOOL("begin_first", serving.kv.tiers[of].begin_first, false,                               \
             "of units that were stored together the beginning of the prompt is the oldest, as "   \
             "it was stored first (LMCache); false: the end")

/* Of the tiers below the first. */
#define PREFETCH_FIELDS(of)                                                                        \
    CHOICE("prefetch", serving.kv.tiers[of].prefetch, "none|best_effort|wait_complete|timeout",    \
           TIER_LOADS_ITSELF,                                                                      \
           "a waiting request's K/V comes to the tier host from its arrival on: as much as has "   \
           "come when its turn comes; all, before which it is passed over; all, or what has come " \
           "in prefetch_timeout_s from its turn on. none: it is loaded as the request starts"),    \
        INT("prefetch_tokens", serving.kv.tiers[of].prefetch_tokens, 256, 0, ANY, "tokens",        \
            "of a prompt, in whole blocks without its last token, behind what lies nearer, there " \
            "or not: fewer are not prefetched"),                                                   \
        TIME("prefetch_timeout_s", serving.kv.tiers[of].prefetch_timeout_ns, 1, 0, A_BILLION,      \
             "prefetch timeout: how long a request whose turn has come is passed over"),           \
        REAL("prefetch_token_s", serving.kv.tiers[of].prefetch_token_s, 0.000244140625, 0, 3600,   \
             "s", "the same, for each token behind what lies nearer")

static const struct ifl_param tier_host_fields[] = {TIER_FIELDS(TIER_HOST)};
static const struct ifl_param tier_disk_fields[] = {TIER_FIELDS(TIER_DISK),
                                                    PREFETCH_FIELDS(TIER_DISK)};
static const struct ifl_param tier_store_fields[] = {
    TIER_FIELDS(TIER_STORE),
    PREFETCH_FIELDS(TIER_STORE),
    REAL("hit_frac", serving.kv.tiers[TIER_STORE].hit_frac, 0, 0, 1, "of each prompt",
         "whole blocks of its beginning that are there before anything is stored: a store that "
         "others fill"),
};

const struct key_table tier_host_keys = {FIELDS(tier_host)};
const struct key_table tier_disk_keys = {FIELDS(tier_disk)};
const struct key_table tier_store_keys = {FIELDS(tier_store)};
