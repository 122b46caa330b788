/* The hand-over of a request from the replica that computes its prompt, the prefill replica, to the
 * one that decodes it.
 *
 *   pull  the decode replica gets the request when its prompt is done, takes blocks for it in a
 *         plan, and reads the K/V
 *   push  the decode replica gets the request when it arrives, and takes blocks then; the prefill
 *         replica writes the K/V as it is computed
 *
 * In both cases K/V moves once it is computed and has blocks at the decode replica. The blocks at
 * the prefill replica are free when it has moved. */
#ifndef SIM_FLEET_HANDOVER_H
#define SIM_FLEET_HANDOVER_H

#include <stdbool.h>
#include <stdint.h>

#include "fleet/link.h"

enum handover_order { HANDOVER_PULL, HANDOVER_PUSH };
/* When the client has the first token: as the prompt ends; as the K/V arrives; as the decode
 * replica has computed the prompt's last token again. */
enum handover_token { TOKEN_OF_PREFILL, TOKEN_ON_ARRIVAL, TOKEN_OF_DECODE };
/* K/V moves once the prompt is done; chunk by chunk, each as its step ends; layer by layer beside
 * the step that computes it (Splitwise, section 4.2; of L layers of a step that lasts T, with x to
 * move, the last has come a latency behind max(T + x / L, T / L + x); where there are blocks
 * for it only from A on, behind max(T + x / L, max(T / L, A) + x)). */
enum handover_overlap { MOVE_AT_END, MOVE_BY_CHUNK, MOVE_BY_LAYER };
/* A request with K/V that is lost before it has moved, or as it moves: it is computed again, or
 * fails. */
enum handover_lost { LOST_RECOMPUTE, LOST_FAIL };

struct handover_rules {
    enum handover_order order;
    enum handover_token first_token;
    enum handover_overlap overlap;
    enum handover_lost lost;
    bool blocks_destination; /* its next step waits for what it loads */
    int64_t lease_ns;        /* K/V is lost if it does not begin to move so soon; 0: never */
    double fail_frac;        /* of moves: their K/V is lost as it comes */
};

/* What moves. */
struct handover_size {
    double token_bytes; /* of all ranks, of the layers that hold all tokens */
    /* With the last of a request's K/V: its last tokens in the layers that hold these alone, and
     * its states. */
    double last_token_bytes, request_bytes;
    int32_t last_tokens;
    int64_t block_pieces; /* that a block moves in */
    int32_t n_layers;
};

/* What moves with the last K/V of a request of n_tokens. */
static inline double handover_last_bytes(const struct handover_size *size, int32_t n_tokens)
{
    return size->request_bytes +
           size->last_token_bytes * (n_tokens < size->last_tokens ? n_tokens : size->last_tokens);
}

#endif
