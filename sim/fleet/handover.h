/* The hand-over of a request from the replica that computes its prompt, the prefill replica, to the
 * one that decodes it.
 *
 *   pull  the decode replica gets the request when its prompt is done, takes blocks for it in a
 *         plan, and reads the K/V
 *   push  the decode replica gets the request when it arrives, and takes blocks then; the prefill
 *         replica writes the K/V as it is computed
 *
 * In both cases K/V moves once it is computed and has blocks at the decode replica. Its blocks at
 * the prefill replica become free when the move has ended. */
#ifndef SIM_FLEET_HANDOVER_H
#define SIM_FLEET_HANDOVER_H

#include <stdbool.h>
#include <stdint.h>

#include "fleet/link.h"

enum handover_order { HANDOVER_PULL, HANDOVER_PUSH };
/* When the client gets the first token: when the prompt is computed; when the K/V arrives; or when
 * the decode replica has computed the prompt's last token again. */
enum handover_token { TOKEN_OF_PREFILL, TOKEN_ON_ARRIVAL, TOKEN_OF_DECODE };
/* When K/V moves.
 * - AT_END: once the prompt is computed
 * - BY_CHUNK: each chunk when its step ends
 * - BY_LAYER: layer by layer during the step that computes it (Splitwise, section 4.2)
 *
 * For a step of L layers that lasts T, with a transfer time of x in all, the last layer arrives one
 * latency after max(T + x / L, T / L + x). If the decode replica has blocks only from A on, it
 * arrives one latency after max(T + x / L, max(T / L, A) + x). */
enum handover_overlap { MOVE_AT_END, MOVE_BY_CHUNK, MOVE_BY_LAYER };
/* What happens to a request with K/V that is lost before or during its move: it is computed again,
 * or it fails. */
enum handover_lost { LOST_RECOMPUTE, LOST_FAIL };

struct handover_rules {
    enum handover_order order;
    enum handover_token first_token;
    enum handover_overlap overlap;
    enum handover_lost lost;
    bool blocks_destination; /* the next step of the decode replica waits for the K/V that it
                                loads */
    int64_t lease_ns;        /* K/V is lost if its move does not begin within this time; 0: never */
    double fail_frac;        /* share of the moves that fail: their K/V is lost on arrival */
};

/* Sizes of the K/V that moves. */
struct handover_size {
    double token_bytes; /* bytes of a token, in all ranks and in the layers that hold all tokens */
    /* Moved with the last part of a request's K/V: the last tokens, in the layers that hold only
     * these, and the request's states. */
    double last_token_bytes, request_bytes;
    int32_t last_tokens;
    int64_t block_pieces; /* pieces that a block moves in */
    int32_t n_layers;
};

/* Returns the bytes that move in addition with the last K/V of a request of n_tokens tokens. */
static inline double handover_last_bytes(const struct handover_size *size, int32_t n_tokens)
{
    return size->request_bytes +
           size->last_token_bytes * (n_tokens < size->last_tokens ? n_tokens : size->last_tokens);
}

#endif
