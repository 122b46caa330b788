/* Turns on a processor that others want, too. */
#ifndef SIM_BASE_TURNS_H
#define SIM_BASE_TURNS_H

/* Asks the system for short turns of the calling thread, which begin the sooner when a wait of its
 * own is over: for programs that have to be in time more than they have to be done. Linux has it
 * from 6.12 on (sched_setattr(2), the runtime of SCHED_OTHER); elsewhere nothing happens. */
void turns_ask_for_short(void);

#endif
