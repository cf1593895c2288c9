"""x"""

PLOTS = ()
