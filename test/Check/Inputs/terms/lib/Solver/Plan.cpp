// A rival, and another rival, that fits the second cache.
// Arrivals and rivalry are other words.
struct Rival {};
