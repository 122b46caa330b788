/* Folders of results, as commands are given them. */
#ifndef INFLIGHT_REPORTS_RUN_DIR_H
#define INFLIGHT_REPORTS_RUN_DIR_H

#include "inflight/error.h"

/* IFL_E_INPUT for the folder of a plan or a placement, which has no summary of points; else IFL_OK.
 */
int run_dir_check(const char *dir, struct ifl_error *error);

#endif
