/* The arguments of serving systems, a table for each: the key of a configuration that an argument
 * corresponds to, if there is one. The tables serve messages about misspelt keys, `inflight import`
 * and `inflight export --server`. */
#ifndef SIM_BASE_SERVER_FLAGS_H
#define SIM_BASE_SERVER_FLAGS_H

#include <stdbool.h>
#include <stddef.h>

enum server { SERVER_VLLM, SERVER_SGLANG, SERVER_TRTLLM, N_SERVERS };

enum flag_takes {
    TAKES_VALUE,
    TAKES_NOTHING, /* --flag or --no-flag */
    TAKES_WORDS,   /* every word up to the next flag */
    TAKES_JSON
};

enum flag_sense {
    FLAG_MAPS,       /* has the meaning of a key */
    FLAG_HARMLESS,   /* changes no scheduling and no timing, or only those of a feature that is not
                      * modelled and has a flag of its own */
    FLAG_DEPENDS,    /* has the meaning of a key if other settings allow it: import/settle_*.c
                        decide */
    FLAG_UNMODELLED, /* changes what is not modelled */
    FLAG_ELSEWHERE   /* no argument of the server: known for messages only */
};

struct server_flag {
    const char *name;    /* with underscores, without dashes */
    const char *aliases; /* further names, a space between two; NULL: none */
    enum flag_takes takes;
    enum flag_sense sense;
    const char *key;     /* the key that it means here; NULL: none */
    const char *value;   /* if the flag takes no value: "=" and the key's value; else "" */
    const char *neutral; /* not modelled: values with which it changes nothing, a | between two;
                          * FLAG_MAPS: the values that the key can say, NULL: all */
    const char *what;    /* not modelled: name of the feature */
};

struct server_flags {
    const struct server_flag *of;
    size_t n;
};

extern const struct server_flags vllm_flags, sglang_flags, trtllm_flags;

const struct server_flags *server_flags_of(enum server server);
/* "vLLM" */
const char *server_name(enum server server);

/* Finds the flag of that name or alias, in any of its spellings ("--max-num-seqs", "max_num_seqs");
 * NULL: none. With `abbreviated`, an unambiguous beginning of a name suffices, as with Python's
 * argparse. */
const struct server_flag *server_flag_find(enum server server, const char *word, bool abbreviated);

/* True if the value is one of the flag's `neutral` ones. */
bool server_flag_allows(const struct server_flag *flag, const char *value);

/* The flag as a command line has it, with dashes but for TensorRT-LLM: "--max-num-seqs". */
const char *server_flag_spell(const char *name, enum server server, char text[64]);

/* ---- messages ---- */

/* Finds a flag with a key among the flags of all servers; of a dotted word only the last part
 * counts. NULL: none. */
const struct server_flag *server_flag_meant(const char *word, enum server *server);

/* "vLLM's --max-num-seqs is serving.batching.max_seqs" */
const char *server_flag_describe(const struct server_flag *flag, enum server server, char *text,
                                 size_t n_bytes);

/* Why a device is not modelled, for the tables and for the lines of logs. */
#define OTHER_DEVICE                                                                               \
    "the server's device, which is no CUDA GPU: neither its memory nor its kernels are those of "  \
    "a "                                                                                           \
    "hardware profile here"

#endif
