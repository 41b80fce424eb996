package lock

// Waiters returns the number of waiters for the lock at path.
func (t *Table) Waiters(path string) (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for k, q := range t.queues {
		if k.path == path {
			n += len(q.waiters)
		}
	}
	return n
}

// Queues counts the locks that are waited for.
func (t *Table) Queues() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.queues)
}
