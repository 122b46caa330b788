/* SIGINT and SIGTERM. The first signal asks the program to stop, and unfinished files are removed.
 * A second signal ends the program at once, since a policy's plan may never return. Two signals
 * within 0.2 s count as one. */
#ifndef SIM_CLI_INTERRUPT_H
#define SIM_CLI_INTERRUPT_H

#include <signal.h>

/* Not 0 after the first signal. */
extern volatile sig_atomic_t interrupt_asked;
void interrupt_catch(void);

#endif
