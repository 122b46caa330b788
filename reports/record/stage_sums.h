/* The share of their time that the stages of pipelines compute. */
#ifndef REPORTS_RECORD_STAGE_SUMS_H
#define REPORTS_RECORD_STAGE_SUMS_H

#include "inflight/report.h"
#include "record/exact_sum.h"

struct stage_span {
    int64_t first_ns, last_ns; /* start of the first step and end of the last one */
    int32_t n_stages;
};

struct stage_sums {
    struct exact_sum *work_ns; /* [n_stages], work per stage, over all pipelines */
    struct stage_span *spans;  /* [n_pipelines] */
    int32_t n_stages;          /* stages of the longest pipeline */
    int32_t n_pipelines;
};

/* Adds a record. Zeroed memory is valid. Returns 0 or IFL_E_NOMEM. */
int stage_sums_add(struct stage_sums *sums, const struct ifl_stage_record *record);
void stage_sums_free(struct stage_sums *sums);
/* Fills the summary's numbers of pipelines, if there are any. */
void stage_sums_describe(const struct stage_sums *sums, struct ifl_summary *summary);

#endif
