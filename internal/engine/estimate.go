package engine

import "time"

// Estimates of what requests use before they are answered.
const (
	// UsualAnswer is the first limit of an answer in tokens, besides a budget of thoughts. The price of so many tokens is reserved
	// before the request; that of the model's own limit, ten times as many, would be more than a day may cost.
	UsualAnswer = 16384
	// BytesPerToken estimates the tokens of a text that the service has not counted.
	BytesPerToken = 4
	// MostTokens is more than any service reports for one answer. The largest windows have ten million tokens, and a search by the service
	// reads its window several times.
	MostTokens = 100_000_000
	// MostSearches is more searches than any service reports for one answer.
	MostSearches = 1000
	// SearchPrice is what Anthropic and OpenAI charge for each search, in USD, besides the tokens.
	SearchPrice = 0.01
	// Uncounted is the lowest number of bytes to a token, for upper bounds. It is half of BytesPerToken, because a limit must hold for
	// text that is not English prose as well.
	Uncounted = 2
	// CacheLife is how long the service keeps the beginning of a conversation in its cache, less a margin.
	CacheLife = 4 * time.Minute
	// CacheHourLife is the same for what the service is asked to keep for an hour. An exactly hourly turn misses it.
	CacheHourLife = 55 * time.Minute
)
