/*
 * The server behind pg_server.h. Nothing here is part of the product, and nothing waits for longer
 * than START_MS.
 */
#include "lib/pg_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <libpq-fe.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/test.h"

#define START_MS 60000
#define STEP_MS  10
#define ARGS_MAX (16 + 2 * PG_SETTINGS_MAX)

/* Where the programs are; empty: nowhere. */
static const char *bin_directory(void)
{
    static char found[128];
    const char *asked = getenv("IDEM_PG_BIN");
    glob_t paths;
    if (found[0] != '\0') {
        return found;
    }
    if (asked != NULL) {
        (void)snprintf(found, sizeof(found), "%s", asked);
        return found;
    }
    if (glob("/usr/lib/postgresql/*/bin/initdb", 0, NULL, &paths) == 0) {
        const char *path = paths.gl_pathv[paths.gl_pathc - 1];
        (void)snprintf(found, sizeof(found), "%.*s", (int)(strlen(path) - strlen("/initdb")), path);
        globfree(&paths);
    }
    return found;
}

/* In the child: another user, if this one is root; and not without its parent. */
static void child_begin(const struct pg_server *server)
{
    const struct passwd *user = getuid() == 0 ? getpwnam("nobody") : NULL;
    if (user != NULL && (setgid(user->pw_gid) != 0 || setuid(user->pw_uid) != 0)) {
        _exit(126);
    }
    if (prctl(PR_SET_PDEATHSIG, SIGQUIT) != 0 || getppid() == 1 || chdir(server->directory) != 0) {
        _exit(126);
    }
    int log = open("server.log", O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (log < 0 || dup2(log, STDOUT_FILENO) < 0 || dup2(log, STDERR_FILENO) < 0) {
        _exit(126);
    }
}

static pid_t program_start(const struct pg_server *server, const char *const *args)
{
    char path[160];
    (void)snprintf(path, sizeof(path), "%s/%s", bin_directory(), args[0]);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        child_begin(server);
        (void)execv(path, (char *const *)(uintptr_t)args); /* Comes back only if it failed. */
        _exit(127);
    }
    return pid;
}

static int free_port(void)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr = { .s_addr = htonl(INADDR_LOOPBACK) } };
    socklen_t size = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, size), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    (void)close(fd);
    return ntohs(address.sin_port);
}

void pg_server_init(struct pg_server *server)
{
    if (bin_directory()[0] == '\0') {
        fail_msg("no PostgreSQL server on this machine: install the package postgresql");
    }
    static const char *const args[] = { "initdb", "-D", "data", "-U",          "idem", "-A",
                                        "trust",  "-E", "UTF8", "--no-locale", "-N",   NULL };
    const struct passwd *user = getpwnam("nobody");
    int status = 0;
    *server = (struct pg_server){ .directory = "/tmp/idem-pg-XXXXXX", .port = free_port() };
    assert_non_null(mkdtemp(server->directory));
    if (getuid() == 0) {
        assert_non_null(user);
        assert_int_equal(chown(server->directory, user->pw_uid, user->pw_gid), 0);
    }
    (void)snprintf(server->url, sizeof(server->url), "host=%s port=%d user=idem dbname=postgres",
                   server->directory, server->port);
    pid_t pid = program_start(server, args);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (status != 0) {
        fail_msg("initdb failed: see %s/server.log", server->directory);
    }
}

/* False: it ended, or takes too long. */
static bool becomes_ready(const struct pg_server *server)
{
    int status = 0;
    int waited_ms = 0;
    while (PQping(server->url) != PQPING_OK) {
        if (waited_ms > START_MS || waitpid(server->pid, &status, WNOHANG) != 0) {
            return false;
        }
        (void)poll(NULL, 0, STEP_MS); /* Another process: there is nothing to wake us. */
        waited_ms += STEP_MS;
    }
    return true;
}

void pg_server_start(struct pg_server *server, const char *const *settings)
{
    char port[16];
    const char *args[ARGS_MAX] = {
        "postgres",  "-D", "data", "-k", server->directory,     "-h",
        "127.0.0.1", "-p", port,   "-c", "shared_buffers=32MB",
    };
    size_t count = 11;
    assert_int_equal(server->pid, 0);
    (void)snprintf(port, sizeof(port), "%d", server->port);
    for (size_t i = 0; settings != NULL && settings[i] != NULL; i++) {
        assert_true(i < PG_SETTINGS_MAX);
        args[count] = "-c";
        args[count + 1] = settings[i];
        count += 2;
    }
    server->pid = program_start(server, args);
    if (!becomes_ready(server)) {
        fail_msg("the server does not start: see %s/server.log", server->directory);
    }
}

static void end(struct pg_server *server, int signal_number)
{
    int status = 0;
    if (server->pid != 0) {
        assert_int_equal(kill(server->pid, signal_number), 0);
        assert_int_equal(waitpid(server->pid, &status, 0), server->pid);
        server->pid = 0;
    }
}

void pg_server_stop(struct pg_server *server)
{
    end(server, SIGINT); /* In order: the next start has nothing to recover. */
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *place)
{
    (void)info;
    (void)kind;
    (void)place;
    return remove(path);
}

void pg_server_deinit(struct pg_server *server)
{
    end(server, SIGQUIT); /* At once. */
    assert_int_equal(nftw(server->directory, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

void pg_server_set_standby(struct pg_server *server, bool standby)
{
    char path[128];
    (void)snprintf(path, sizeof(path), "%s/data/standby.signal", server->directory);
    if (!standby) {
        assert_int_equal(unlink(path), 0);
        return;
    }
    int fd = open(path, O_WRONLY | O_CREAT, 0644);
    assert_true(fd >= 0);
    (void)close(fd);
}

/* No connection came about, or the server said itself that it ends it (class 57P). */
static bool is_ending(const PGconn *connection, const PGresult *result)
{
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    return state != NULL ? strncmp(state, "57P", 3) == 0 : PQbackendPID(connection) == 0;
}

/*
 * A server whose backend was killed ends all its connections, a moment after it still said that it
 * was there. What tests say is safe to say again.
 */
static PGresult *run(struct pg_server *server, const char *sql, PGconn **ret_connection)
{
    PGresult *result = NULL;
    for (int waited_ms = 0;; waited_ms += STEP_MS) {
        *ret_connection = PQconnectdb(server->url);
        PQclear(PQexec(*ret_connection, "SET client_min_messages = warning"));
        result = PQexec(*ret_connection, sql);
        if (!is_ending(*ret_connection, result) || waited_ms > START_MS) {
            break;
        }
        PQclear(result);
        PQfinish(*ret_connection);
        (void)poll(NULL, 0, STEP_MS);
    }
    ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
        fail_msg("%s: %s", sql, PQerrorMessage(*ret_connection));
    }
    return result;
}

void pg_server_say(struct pg_server *server, const char *sql)
{
    PGconn *connection = NULL;
    PQclear(run(server, sql, &connection));
    PQfinish(connection);
}

long long pg_server_number(struct pg_server *server, const char *sql)
{
    PGconn *connection = NULL;
    PGresult *result = run(server, sql, &connection);
    long long number = PQntuples(result) > 0 ? strtoll(PQgetvalue(result, 0, 0), NULL, 10) : 0;
    PQclear(result);
    PQfinish(connection);
    return number;
}
