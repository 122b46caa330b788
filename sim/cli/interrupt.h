/* SIGINT and SIGTERM: the first asks to stop, and what is half done is tidied away; one that comes
 * a second later, since a policy's plan may never return, ends the program. */
#ifndef SIM_CLI_INTERRUPT_H
#define SIM_CLI_INTERRUPT_H

#include <signal.h>

/* Not 0 once somebody has asked. */
extern volatile sig_atomic_t interrupt_asked;
void interrupt_catch(void);

#endif
