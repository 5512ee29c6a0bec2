/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the store to which the agent on this machine writes its profiles. */
#ifndef CLI_QUERY_AGENT_H
#define CLI_QUERY_AGENT_H

/* Both are malloc'ed arguments for query_place_open(). */
struct query_agent_store {
	char *place;
	char *options; /* NULL: none */
};

/* who: the command, for messages; socket: of the agent; NULL: the default. 0, or an exit code after
 * one error was logged. */
int query_agent_find(struct query_agent_store *, const char *who, const char *socket);
void query_agent_free(struct query_agent_store *);
#endif
