"""What several servers share in Redis 7 or Valkey. Needs the extra `redis`. It may be emptied at any moment."""

from octavo.stores.redis.shared import RedisShared as RedisShared
