/* The ranks that stand in front of log lines, as in "[2026-02-01 10:00:00 DP0 TP3 EP3]" of SGLang
 * and
 * "(Worker_TP1 pid=7)" of vLLM.
 *
 * SGLang's scheduler names the ranks that a server has several of (managers/scheduler.py,
 * run_scheduler_process; EP since 0.4.10): DP if dp_size is above 1, and so TP, EP and PP; up to
 * 0.4.5 TP always. With
 * attention in parallel a TP rank belongs to the DP rank TP / (tp_size / dp_size)
 * (layers/dp_attention.py, compute_dp_attention_world_info). Without, each DP rank is a server of
 * its own, with TP ranks from 0 on (managers/data_parallel_controller.py). */
#ifndef SIM_IMPORT_LOG_RANKS_H
#define SIM_IMPORT_LOG_RANKS_H

#include "import/facts.h"

enum { RANK_TENSOR, RANK_DATA, RANK_EXPERT, RANK_PIPELINE, N_RANK_KINDS };

struct log_ranks {
    long n[N_RANK_KINDS]; /* the highest rank that logs, and 1 */
    struct place at[N_RANK_KINDS];
    /* Bounds of the GPUs of a group, if attention is in parallel: by the TP and DP ranks of a line.
     */
    long group_least, group_most;
};

void log_ranks_init(struct log_ranks *ranks);
void log_ranks_note(struct log_ranks *ranks, const char *line, struct place at);
/* Adds the facts tp_ranks, dp_ranks, ep_ranks, pp_ranks and ranks_share_attention. Returns 0 or a
 * negative code. */
int log_ranks_say(const struct log_ranks *ranks, struct facts *facts, struct ifl_error *error);

#endif
