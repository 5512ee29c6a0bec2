/* SPDX-License-Identifier: Apache-2.0 */
/* How a loss stands in a profile's comments: for people, and for pprof_decode(). The reason
 * follows. */
#ifndef PROFILE_PPROF_LOSS_H
#define PROFILE_PPROF_LOSS_H

#include <inttypes.h>

#define PPROF_LOSS_FORMAT "fusee: lost or cut %" PRId64 " samples: "
#define PPROF_LOSS_SCAN "fusee: lost or cut %" SCNd64 " samples: %n"
#endif
