/* The blocks of a beam search: k sequences that copy each other's tables as they go.
 *
 * After each token every sequence goes on from some sequence's table, its own or another's, and
 * blocks that no table has any more are lost. A block that is not full yet and that several tables
 * have is copied by all but the first of them before they write to it (vLLM's fork and append_slot;
 * the last to write keeps the original there). Tables hold places among the request's blocks, not
 * block numbers, so that they outlive a copy to host memory and back:
 *
 *     [in common 0 .. C-1] [in some table, in any order: C .. n_used-1] [in reserve]
 *
 * Blocks that all tables have come first, in the order of their tokens. Behind them a table is a
 * place a column. Leading columns that become common move forwards, so the table stays short. */
#ifndef SIM_KV_BEAMS_H
#define SIM_KV_BEAMS_H

#include <stdbool.h>
#include <stdint.h>

/* How a search goes on: nothing is really sampled. */
struct beam_search {
    bool search;      /* the samples of a request are the beams of a search */
    double fork_frac; /* of the beams go on from one drawn at random */
    uint64_t seed;
};

/* The beam whose table beam seq goes on with after the request's n_out-th token. */
int32_t beam_parent(const struct beam_search *search, uint64_t request, int32_t n_out, int32_t seq,
                    int32_t n_seqs);

struct kv_beams {
    int32_t n_seqs; /* 0: they have not begun */
    int32_t n_common, n_columns, n_used;
    int32_t n_added; /* blocks that the last step took */
    int32_t *at;     /* scratch, then [n_columns][n_seqs]; kept for the next request */
    int32_t cap;
};

/* The layout of kv/group.h: n_common blocks, then a block of each sequence a column. 0, or -1
 * without memory. */
int kv_beams_begin(struct kv_beams *beams, int32_t n_seqs, int32_t n_common, int32_t n_columns);
void kv_beams_end(struct kv_beams *beams);

/* Tables that have the last block, or the first of each that have the same. */
int32_t kv_beams_last(const struct kv_beams *beams);
/* Blocks saved by sharing. */
static inline int32_t kv_beams_saved(const struct kv_beams *beams)
{
    return beams->n_seqs * (beams->n_common + beams->n_columns) - beams->n_used;
}

/* Blocks that one more token of each sequence takes; full: the last ones are. */
int32_t kv_beams_need(const struct kv_beams *beams, bool full);
/* Takes them from the blocks in reserve: places n_used - n_added and on. Of those that are copies,
 * kv_beams_copied says of which place. 0, or -1 without memory. */
int kv_beams_step(struct kv_beams *beams, bool full);
int32_t kv_beams_copied(const struct kv_beams *beams, int32_t place);
/* Undoes the last step; blocks change places. */
void kv_beams_undo(struct kv_beams *beams, bool full, uint32_t *blocks);

struct kv_beams_lost {
    int32_t n, n_last; /* blocks, and how many of them were some table's last */
};
/* Sequence i goes on with the table of parents[i]. Lost blocks are the first ones in reserve then.
 */
struct kv_beams_lost kv_beams_fork(struct kv_beams *beams, const int32_t *parents,
                                   uint32_t *blocks);
/* The place of a sequence's i-th block. */
int32_t kv_beams_at(const struct kv_beams *beams, int32_t seq, int32_t i);
/* [n_seqs] for the caller of kv_beams_fork. */
int32_t *kv_beams_parents(struct kv_beams *beams);

#endif
