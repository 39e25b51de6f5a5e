"""Actions that begin at the same time. Standard library only."""

import threading

PATIENCE_S = 180.0


def together(actions):
    """Runs every action in a thread of its own, let go at once; returns results in order."""
    barrier = threading.Barrier(len(actions))
    results = [None] * len(actions)

    def body(index, action):
        try:
            barrier.wait(PATIENCE_S)
            results[index] = action()
        except Exception as error:  # pylint: disable=broad-except
            results[index] = error

    threads = [
        threading.Thread(target=body, args=item, daemon=True) for item in enumerate(actions)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
        assert not thread.is_alive(), f"an action did not end within {PATIENCE_S} s"
    for result in results:
        if isinstance(result, Exception):
            raise result
    return results
