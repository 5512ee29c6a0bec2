/* SPDX-License-Identifier: Apache-2.0 */
#include "opener/internal/share.h"

#include <string.h>

#define SECOND_NS 1000000000ull
/* The most that queries may wait in a second */
#define OF_ALL_NS 100000000ull
#define OF_USER_NS 50000000ull

bool opener_share_is_touched(struct opener_share *s, uint64_t now)
{
	if (now / SECOND_NS != s->second)
		*s = (struct opener_share){.second = now / SECOND_NS};
	return s->waited;
}

/* The user's place, or a free place; OPENER_SHARE_USERS: none. */
static uint32_t place_of(const struct opener_share *s, uint32_t uid)
{
	uint32_t i = 0;

	while (i < OPENER_SHARE_USERS && s->users[i].ns && s->users[i].uid != uid)
		i++;
	return i;
}

bool opener_share_is_used_up(const struct opener_share *s, uint32_t uid)
{
	uint32_t i = uid ? place_of(s, uid) : OPENER_SHARE_USERS;

	return s->waited >= OF_ALL_NS || (i < OPENER_SHARE_USERS && s->users[i].ns >= OF_USER_NS);
}

void opener_share_add(struct opener_share *s, uint32_t uid, uint64_t ns)
{
	uint32_t i = place_of(s, uid);

	s->waited += ns;
	if (i == OPENER_SHARE_USERS)
		return;
	s->users[i].uid = uid;
	s->users[i].ns += ns;
}
