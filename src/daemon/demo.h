/*
 * demo.h - the configuration behind `idem serve --demo`, as text.
 *
 * It is read by the rules that hold for every file, so it is an example that cannot go stale.
 * examples/idem.conf explains the same settings for a real service.
 */
#ifndef IDEM_DAEMON_DEMO_H
#define IDEM_DAEMON_DEMO_H

extern const char idem_demo_config[];

#endif /* IDEM_DAEMON_DEMO_H */
