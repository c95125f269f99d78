def draw(r, m):
    raise NotImplementedError
