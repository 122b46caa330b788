/* SIGINT and SIGTERM: the first asks to stop, and what is half done is tidied away; a second one,
 * since a policy's plan may never return, ends the program at once. Two within 0.2 s are one. */
#ifndef SIM_CLI_INTERRUPT_H
#define SIM_CLI_INTERRUPT_H

#include <signal.h>

/* Not 0 once somebody has asked. */
extern volatile sig_atomic_t interrupt_asked;
void interrupt_catch(void);

#endif
