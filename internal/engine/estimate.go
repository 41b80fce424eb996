package engine

import "time"

// What an engine expects of requests before they are answered.
const (
	// UsualAnswer is how many tokens an answer may have at first, besides a budget of thoughts. What it may cost is reserved
	// while it comes in, and a model's own limit, ten times as much, is more than a day may cost.
	UsualAnswer = 16384
	// BytesPerToken is a common rule of thumb for what the service has not counted yet.
	BytesPerToken = 4
	// Uncounted is how many bytes of a text, at least, make a token. It is half of BytesPerToken: a limit must hold for a text
	// that is no English prose as well.
	Uncounted = 2
	// CacheLife is how long the service is expected to have the beginning of a conversation in its cache, with time to spare.
	CacheLife = 4 * time.Minute
)
