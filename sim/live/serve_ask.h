/* The parameters of a client's request, read from its body as vLLM does (0.32.0, with the same
 * texts of errors). Unknown keys are ignored, as in vLLM. */
#ifndef SIM_LIVE_SERVE_ASK_H
#define SIM_LIVE_SERVE_ASK_H

#include <jansson.h>
#include <stdbool.h>

#include "live/serve_tokenizer.h"

struct served_model {
    const char *name;   /* name that clients use */
    const char *config; /* name in the configuration */
    int32_t max_model_tokens;
};

struct served_models {
    const struct served_model *of; /* [n] */
    size_t n;
    const struct served_text *text; /* of all of them */
    int32_t most_logprobs;          /* most log probabilities per token of an answer; 0: not even
                                       of its own tokens */
};

/* An answer that is an error. */
struct answer_error {
    int status; /* 0: none */
    const char *type;
    char param[64]; /* "": null */
    char message[768];
};

enum { ASK_NAME_BYTES = 128 };

struct ask {
    bool chat, stream, include_usage, continuous_usage, returns_ids, ignores_eos, echoes;
    bool is_framed;     /* add_special_tokens */
    bool keeps_special; /* not skip_special_tokens */
    bool names_tokens;  /* of /tokenize: return_token_strs */
    int32_t max_tokens;
    int32_t min_tokens, n, priority;
    int32_t n_logprobs; /* likeliest tokens with each of the answer; -1: not asked for */
    size_t model;       /* index */
    char user[ASK_NAME_BYTES], session[ASK_NAME_BYTES], request_id[ASK_NAME_BYTES];
    struct tokens *prompts; /* [n_prompts], owned */
    size_t n_prompts;
    bool by_law; /* the length of the answer is drawn by the server's law */
};

/* Reads a request. Returns false if it is refused. ask_free must be called in either case. */
bool ask_read(struct ask *ask, bool chat, const char *body, size_t n_bytes,
              const struct served_models *models, int32_t most_samples,
              struct answer_error *refusal);
/* As ask_read, for /tokenize: only the prompt. */
bool ask_read_prompt(struct ask *ask, const char *body, size_t n_bytes,
                     const struct served_models *models, struct answer_error *refusal);
/* As ask_read, for /detokenize: its ids, as a prompt. */
bool ask_read_tokens(struct ask *ask, const char *body, size_t n_bytes,
                     const struct served_models *models, struct answer_error *refusal);
void ask_free(struct ask *ask);

/* The body of an error, the caller's to free; NULL without memory. */
char *answer_error_json(const struct answer_error *refusal);
/* Fills the refusal. Returns false. */
IFL_PRINTF(5, 6)
bool refuse(struct answer_error *refusal, int status, const char *type, const char *param,
            const char *format, ...);

#endif
