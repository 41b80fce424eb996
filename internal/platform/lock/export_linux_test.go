package lock

func Uncached(path string) string { return uncached(path) }
