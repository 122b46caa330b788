/* Finds the folder of the running program, and the folders that were installed with it. */
#ifndef SIM_BASE_PROGRAM_H
#define SIM_BASE_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

enum { PROGRAM_PATH_BYTES = 4096 };

/* The folder that holds the program; "" if the system does not tell, or if the path is too long. */
void program_folder(char folder[PROGRAM_PATH_BYTES]);

/* The folder of the installation, such as /usr/local, found from the program's own folder; "" if
 * the program is not in a folder for programs (bin). */
void program_prefix(char prefix[PROGRAM_PATH_BYTES]);

/* The place-th folder, from 0, that data (PROGRAM_DATA) or modules (PROGRAM_MODULES) may be
 * installed in; false if there are no more. */
enum program_part { PROGRAM_DATA, PROGRAM_MODULES };
bool program_place(enum program_part part, size_t place, char folder[PROGRAM_PATH_BYTES]);

#endif
