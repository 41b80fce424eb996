package lock

// Waiters counts those who wait for the lock at path.
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
