"""Writes to a collection of a MongoDB-compatible server.

    orders.py ADDRESS load DOCUMENTS
    orders.py ADDRESS update DOCUMENTS CHANGED SEED
    orders.py ADDRESS index
"""

import random
import sys

import pymongo

address, what, *numbers = sys.argv[1:]
numbers = [int(number) for number in numbers]
client = pymongo.MongoClient(address, directConnection=True)
orders = client.shop.orders


def text(source):
    return source.randbytes(1400).hex()


if what == "load":
    source = random.Random(0)
    for first in range(0, numbers[0], 100):
        ids = range(first, first + 100)
        orders.insert_many({"_id": i, "i": i, "text": text(source)} for i in ids)
elif what == "update":
    documents, changed, seed = numbers
    source = random.Random(seed)
    ids = source.sample(range(documents), changed)
    # The same size, so that nothing but the place changes.
    for first in range(0, changed, 100):
        orders.bulk_write(
            [
                pymongo.UpdateOne({"_id": i}, {"$set": {"text": text(source)}})
                for i in ids[first : first + 100]
            ]
        )
else:
    orders.create_index("i")
