/* Where the running program stands, and what was installed with it.
 *
 * An installation may be staged under another root (DESTDIR) or moved as a whole, so files are
 * looked for from the program's own place first, then where they were to be installed. */
#ifndef SIM_PROGRAM_H
#define SIM_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

enum { PROGRAM_PATH_BYTES = 4096 };

/* The folder that holds the program, "" where the system does not tell or its path is longer. */
void program_folder(char folder[PROGRAM_PATH_BYTES]);

/* The folder that the installation stands in, as /usr/local, found from the program's own; "" for a
 * program that stands in no folder for programs. */
void program_prefix(char prefix[PROGRAM_PATH_BYTES]);

/* The place-th place, from 0, where `under`, a folder of data or modules (PROGRAM_DATA,
 * PROGRAM_ENGINES), may be installed; false where there are no more. */
enum program_part { PROGRAM_DATA, PROGRAM_ENGINES };
bool program_place(enum program_part part, size_t place, char folder[PROGRAM_PATH_BYTES]);

#endif
