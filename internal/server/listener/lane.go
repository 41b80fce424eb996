package listener

import "sync"

// lanes runs work in order, per lane one at a time, and different lanes beside each other. A lane without work costs nothing.
type lanes struct {
	mu      sync.Mutex
	work    map[string][]func()
	running sync.WaitGroup
}

func (l *lanes) do(lane string, work func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.work == nil {
		l.work = map[string][]func(){}
	}
	before, running := l.work[lane]
	l.work[lane] = append(before, work)
	if !running {
		l.running.Go(func() { l.serve(lane) })
	}
}

func (l *lanes) serve(lane string) {
	for {
		l.mu.Lock()
		list := l.work[lane]
		if len(list) == 0 {
			delete(l.work, lane)
			l.mu.Unlock()
			return
		}
		l.work[lane] = list[1:]
		l.mu.Unlock()
		list[0]()
	}
}

func (l *lanes) wait() { l.running.Wait() }
