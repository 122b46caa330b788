#include "live/replay_prompt.h"

#include <string.h>

#include "base/array.h"
#include "inflight/minmax.h"
#include "run/token_ids.h"

int replay_text_add(struct replay_text *text, const char *bytes, size_t n)
{
    if (text->n + n > text->cap) {
        const size_t more = text->n + n + (text->n + n) / 2 + 256;
        if (array_grow(&text->of, text->n, more, 1) < 0)
            return IFL_E_NOMEM;
        text->cap = more;
    }
    memcpy(text->of + text->n, bytes, n);
    text->n += n;
    return 0;
}

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

static char *put_id(char *at, uint32_t id)
{
    char digits[10];
    int n = 0;
    do {
        digits[n++] = (char)('0' + id % 10);
        id /= 10;
    } while (id > 0);
    while (n > 0)
        *at++ = digits[--n];
    return at;
}

int replay_prompt_list(const int32_t *ids, int32_t n, struct replay_text *text)
{
    char part[64 * 12];
    int rc = replay_text_add(text, "[", 1);
    for (int32_t i = 0; rc == 0 && i < n;) {
        char *at = part;
        for (const int32_t end = ifl_min(i + 64, n); i < end; i++) {
            at = put_id(at, (uint32_t)ids[i]);
            *at++ = ',';
        }
        rc = replay_text_add(text, part, (size_t)(at - part) - (i == n));
    }
    return rc == 0 ? replay_text_add(text, "]", 1) : rc;
}
