/* The blocks of a beam search: k sequences that copy each other's tables as they go.
 *
 * After each token every sequence continues from some sequence's table, its own or another's.
 * Blocks that no table has any more are lost. A partial block that several tables have is copied
 * before it is written to: the first of these tables keeps the original, each other one takes a
 * copy. (In vLLM's fork and append_slot the last to write keeps the original.) Tables hold places
 * among the request's blocks, not block numbers, so that they outlive a copy to host memory and
 * back:
 *
 *     [in common 0 .. C-1] [in some table, in any order: C .. n_used-1] [in reserve]
 *
 * Blocks that all tables have come first, in the order of their tokens. Behind them a table has one
 * place per column. A leading column that becomes common moves to the front part, so the table
 * stays short. */
#ifndef SIM_REPLICA_KV_BEAMS_H
#define SIM_REPLICA_KV_BEAMS_H

#include <stdbool.h>
#include <stdint.h>

#include "inflight/error.h"

/* How a search continues. Parents are drawn, since no token is really sampled. */
struct beam_search {
    bool search;      /* the samples of a request are the beams of a search */
    double fork_frac; /* probability that a beam continues from a beam drawn at random */
    uint64_t seed;
};

/* Returns the parent of beam seq: the beam whose table seq continues after the request's n_out-th
 * token. */
int32_t beam_parent(const struct beam_search *search, uint64_t request, int32_t n_out, int32_t seq,
                    int32_t n_seqs);

struct kv_beams {
    int32_t n_seqs; /* 0: the beams have not begun */
    int32_t n_common, n_columns, n_used;
    int32_t n_added; /* blocks that the last step took */
    int32_t *at;     /* scratch, then [n_columns][n_seqs]; the memory is kept for the next
                        request */
    int32_t cap;
};

/* Begins a search with the layout of kv/group.h: n_common blocks, then n_columns columns of one
 * block per sequence. Returns 0 or IFL_E_NOMEM. */
int kv_beams_begin(struct kv_beams *beams, int32_t n_seqs, int32_t n_common, int32_t n_columns);
void kv_beams_end(struct kv_beams *beams);

/* The number of distinct last blocks over all tables. */
int32_t kv_beams_last(const struct kv_beams *beams);
/* Blocks saved by sharing. */
static inline int32_t kv_beams_saved(const struct kv_beams *beams)
{
    return beams->n_seqs * (beams->n_common + beams->n_columns) - beams->n_used;
}

/* Blocks that one more token of each sequence takes. full: the last blocks are full, so each
 * sequence takes a new one. Otherwise each table that shares its last block, except the first of
 * these tables, takes a copy. */
int32_t kv_beams_need(const struct kv_beams *beams, bool full);
/* step: takes the blocks of kv_beams_need from the reserve; afterwards they are at places n_used -
 * n_added to n_used - 1. Returns 0 or IFL_E_NOMEM. copied: the place of which a new place is a
 * copy. */
int kv_beams_step(struct kv_beams *beams, bool full);
int32_t kv_beams_copied(const struct kv_beams *beams, int32_t place);
/* Undoes the last step. Blocks may change places. */
void kv_beams_undo(struct kv_beams *beams, bool full, uint32_t *blocks);

struct kv_beams_lost {
    int32_t n, n_last; /* blocks, and how many of them were some table's last */
};
/* Gives sequence i the table of sequence parents[i]. Blocks that no table has any more become the
 * first ones in reserve. */
struct kv_beams_lost kv_beams_fork(struct kv_beams *beams, const int32_t *parents,
                                   uint32_t *blocks);
/* The place of a sequence's i-th block. */
int32_t kv_beams_at(const struct kv_beams *beams, int32_t seq, int32_t i);
/* Returns an array [n_seqs] for the caller of kv_beams_fork to fill. */
int32_t *kv_beams_parents(struct kv_beams *beams);

#endif
