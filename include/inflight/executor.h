/* Executors: a cost model in virtual time, or an engine in wall time.
 *
 * `submit` returns at once; `next` gives the earliest completion. Virtual time jumps to it, wall
 * time waits for it; one loop drives both and cannot tell them apart. Functions that can fail
 * return 0 or more, or a negative code with `error` filled in, which ends the run. One thread
 * calls. */
#ifndef INFLIGHT_EXECUTOR_H
#define INFLIGHT_EXECUTOR_H

#include "inflight/error.h"
#include "inflight/step.h"
#include "inflight/time.h"

struct ifl_done {             /* a step that has ended */
    uint64_t step;            /* its number, as submitted */
    uint32_t replica;         /* that submitted it */
    int64_t start_ns, end_ns; /* simulated or measured */
    int64_t device_ns;        /* time on the device; a simulation says end - start */
};

struct ifl_executor_ops {
    size_t size_bytes;
    const char *name;
    bool wants_work; /* descriptions carry one ifl_work a sequence, with block tables */
    /* Now, since the start of the run. A simulation says the time of its last answer. */
    int64_t (*now)(void *self);
    /* Takes the step; the steps of a replica execute in the order they were submitted. */
    int (*submit)(void *self, const struct ifl_step_desc *, struct ifl_error *);
    /* 1: *done is the earliest completion, not after until_ns. 0: there is none by then, and
     * now() >= until_ns. Negative: an error. */
    int (*next)(void *self, int64_t until_ns, struct ifl_done *, struct ifl_error *);
    /* The request has left for good. Optional. */
    void (*forget)(void *self, uint64_t serial);
    /* How long this step and those after it would take, up to n in all, if they followed one
     * another and each computed one more token of the same sequences: of how many it can tell, 0
     * where only submitting one can; those behind the first take a second or two each, no more, so
     * that they can be added up. Optional: then the loop flies steps between which nothing happens
     * without submitting them. */
    size_t (*durations)(void *self, const struct ifl_step_desc *first, size_t n,
                        int64_t *duration_ns);
};

#endif
