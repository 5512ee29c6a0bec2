/* SPDX-License-Identifier: Apache-2.0 */
#include "ui/internal/address.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "base/text.h"

static int make(char text[UI_TOKEN])
{
	unsigned char bytes[UI_TOKEN_BYTES];

	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
		return errno ? -errno : -EIO;
	text_hex(text, bytes, sizeof(bytes));
	return 0;
}

int ui_address_make(struct ui_address *a)
{
	int r = make(a->token);

	return r ? r : make(a->ticket);
}

/* Compares in constant time, so that the token cannot be guessed character by character. */
static bool begins_with(const char *path, const char token[UI_TOKEN])
{
	unsigned int differs = 0;

	if (strlen(token) != UI_TOKEN - 1 || strnlen(path, UI_TOKEN) < UI_TOKEN)
		return false;
	for (int i = 0; i < UI_TOKEN - 1; i++)
		differs |= (unsigned char)path[1 + i] ^ (unsigned char)token[i];
	return !differs;
}

bool ui_address_permits(const struct ui_address *a, const char *path)
{
	if (begins_with(path, a->token))
		return path[UI_TOKEN] == '/';
	return begins_with(path, a->ticket) && !path[UI_TOKEN];
}
