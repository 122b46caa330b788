#include "live/replay_prompt.h"

#include <string.h>

#include "inflight/minmax.h"
#include "live/row_fields.h"
#include "run/token_ids.h"

void replay_prompt_ids(const struct replay_vocabulary *vocabulary, const struct arrival *arrival,
                       const struct replay_known *known, int32_t *ids)
{
    /* Only ids of the prompt are asked for, so there is none that an engine has generated. */
    const struct token_ids drawn = {
        .seed = vocabulary->seed, .n_vocab = vocabulary->n_ids, .n_requests = SIZE_MAX};
    const struct token_owner owner = {
        .serial = arrival->row,
        .n_seqs = 1,
        .n_prompt = arrival->n_prompt,
        .repeats = arrival->repeats,
        .prefix_group = arrival->said.prefix_group,
        .stream_tokens = ifl_min(arrival->stream_tokens, arrival->n_prompt),
        .hash_ids = arrival->hash_ids,
        .named_tokens = ifl_min(arrival->named_tokens, arrival->n_prompt),
        .hash_id_tokens = arrival->hash_id_tokens,
    };
    const int32_t n_known = known ? ifl_min(known->n, arrival->n_prompt) : 0;
    for (int32_t i = 0; i < n_known; i++)
        ids[i] = known->ids[i];
    for (int32_t i = n_known; i < arrival->n_prompt; i++)
        ids[i] = vocabulary->first_id + token_ids_get(&drawn, &owner, i);
}

int replay_prompt_list(const int32_t *ids, int32_t n, struct replay_text *text)
{
    char part[64 * 12];
    int rc = replay_text_add(text, "[", 1);
    for (int32_t i = 0; rc == 0 && i < n;) {
        char *at = part;
        for (const int32_t end = ifl_min(i + 64, n); i < end; i++) {
            if (i > 0)
                *at++ = ',';
            at = row_put_digits(at, (uint32_t)ids[i], 1);
        }
        rc = replay_text_add(text, part, (size_t)(at - part));
    }
    return rc == 0 ? replay_text_add(text, "]", 1) : rc;
}
