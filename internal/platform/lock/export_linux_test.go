package lock

func Uncached(path string) (string, error) { return uncached(path) }
