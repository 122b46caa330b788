/* Time slices of a thread on a processor that it shares with other threads. */
#ifndef SIM_BASE_TURNS_H
#define SIM_BASE_TURNS_H

/* Requests short time slices for the calling thread, so that it runs sooner after a wait: for
 * threads that need low latency more than throughput. Linux has this from 6.12 on
 * (sched_setattr(2), the runtime of SCHED_OTHER); elsewhere nothing happens. */
void turns_ask_for_short(void);

#endif
