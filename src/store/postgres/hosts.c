/*
 * host, hostaddr and port are lists of the same length; one port is everybody's. What does not fit
 * together is handed to libpq as it stands: it knows best what to say.
 */
#include "store/postgres/hosts.h"

#include <libpq-fe.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

#define OPTIONS_MAX 64
#define PART_MAX    256

static const char *const lists[] = { "host", "hostaddr", "port" };

static const char *value_of(const struct idem_postgres_hosts *hosts, const char *keyword)
{
    for (size_t i = 0; hosts->options[i].keyword != NULL; i++) {
        if (strcmp(hosts->options[i].keyword, keyword) == 0) {
            return hosts->options[i].val;
        }
    }
    return NULL;
}

/* 0: there is none. */
static size_t parts_count(const char *list)
{
    size_t count = list == NULL || list[0] == '\0' ? 0 : 1;
    for (const char *at = list; count > 0 && *at != '\0'; at++) {
        count += *at == ',' ? 1 : 0;
    }
    return count;
}

/* How many there are if each can be tried alone; 1: they are left to libpq. */
static size_t hosts_count(const struct idem_postgres_hosts *hosts)
{
    size_t most = 1;
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(lists); i++) {
        size_t count = parts_count(value_of(hosts, lists[i]));
        bool fits = count <= 1 || most == 1 || count == most;
        if (!fits || count > IDEM_POSTGRES_HOSTS_MAX) {
            return 1;
        }
        most = count > most ? count : most;
    }
    bool named = parts_count(value_of(hosts, "host")) == most ||
                 parts_count(value_of(hosts, "hostaddr")) == most;
    return named ? most : 1;
}

bool idem_postgres_hosts_open(struct idem_postgres_hosts *hosts, const char *url)
{
    hosts->options = PQconninfoParse(url, NULL);
    if (hosts->options == NULL) {
        return false;
    }
    hosts->count = hosts_count(hosts);
    return true;
}

void idem_postgres_hosts_close(struct idem_postgres_hosts *hosts)
{
    PQconninfoFree(hosts->options); /* Accepts NULL. */
    hosts->options = NULL;
}

/* The part of a list that is about one host, in `memory`; a single one is about all. */
static const char *part_of(const char *list, size_t index, char memory[PART_MAX])
{
    struct idem_str rest = idem_str_from(list);
    struct idem_str part = idem_str_next(&rest, ',');
    if (parts_count(list) <= 1) {
        return list;
    }
    for (size_t i = 0; i < index; i++) {
        part = idem_str_next(&rest, ',');
    }
    (void)snprintf(memory, PART_MAX, "%.*s", (int)part.len, part.data); /* Names are shorter. */
    return memory;
}

/* Which of the lists this is; IDEM_ARRAY_COUNT(lists): none. */
static size_t list_index(const char *keyword)
{
    size_t i = 0;
    while (i < IDEM_ARRAY_COUNT(lists) && strcmp(keyword, lists[i]) != 0) {
        i += 1;
    }
    return i;
}

struct pg_conn *idem_postgres_hosts_start(const struct idem_postgres_hosts *hosts, size_t index)
{
    const char *keywords[OPTIONS_MAX + 1] = { NULL };
    const char *values[OPTIONS_MAX + 1] = { NULL };
    char memory[IDEM_ARRAY_COUNT(lists)][PART_MAX];
    size_t count = 0;
    for (size_t i = 0; hosts->options[i].keyword != NULL && count < OPTIONS_MAX; i++) {
        const PQconninfoOption *option = &hosts->options[i];
        if (option->val == NULL) {
            continue;
        }
        size_t list = list_index(option->keyword);
        bool is_list = hosts->count > 1 && list < IDEM_ARRAY_COUNT(lists);
        keywords[count] = option->keyword;
        values[count] = is_list ? part_of(option->val, index, memory[list]) : option->val;
        count += 1;
    }
    return PQconnectStartParams(keywords, values, 0);
}
